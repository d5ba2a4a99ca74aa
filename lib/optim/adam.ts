import { checkNonNegative, describe } from '../runtime/arguments.js';
import { call, callAsync, native } from '../tensor/dispatch.js';
import { zeros, zerosLike } from '../tensor/create.js';
import { keep, tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';
import { Optimizer } from './optimizer.js';
import type {
  BaseSettings,
  OptimizerState,
  ParameterGroup,
  ParameterSource,
  ParameterState,
  Update,
} from './optimizer.js';

/** Settings of {@link Adam}; the defaults are PyTorch's. */
export interface AdamSettings extends BaseSettings {
  /** learning rate; default 1e-3 */
  lr: number;
  /** decay rates of the means of gradients and squares; default [0.9, 0.999]; paper: [0.9, 0.98] */
  betas: readonly [number, number];
  /** added to the root of the mean square; default 1e-8; the paper: 1e-9 */
  eps: number;
  /** default 0 for Adam (added to the gradient), 0.01 for AdamW (shrinks the parameter itself) */
  weightDecay: number;
}

interface AdamState {
  readonly step: Tensor;
  readonly exp_avg: Tensor;
  readonly exp_avg_sq: Tensor;
}

/** How a step scales all gradients before it uses them, on their device. @internal */
export interface GradientScaling {
  /** float32 scalar that the gradients are divided by */
  readonly divisor: Tensor;
  /** float32 scalar: 1 if the gradients are not finite, so that no parameter changes; else 0 */
  readonly fault: Tensor;
  /** learning rate of each group as a float32 scalar, for recorded steps; default: its `lr` */
  readonly rates?: readonly Tensor[];
}

/**
 * Whether `adam_rows_` supports tables of this dtype and device: on a GPU, if our kernels are
 * loaded.
 *
 * @internal
 */
export function hasRowUpdate({ dtype, device }: Tensor): boolean {
  if (dtype !== 'float32' && dtype !== 'float64') return false;
  return native().hasKernel('torchformer_device::adam_rows_', '', device);
}

/**
 * Adam (Kingma and Ba 2015, algorithm 1; paper, section 5.3) with libtorch's fused kernel: one
 * native call for all parameters of a group.
 */
export class Adam extends Optimizer<AdamSettings> {
  /** PyTorch's defaults. */
  static readonly defaults: AdamSettings = {
    lr: 1e-3,
    betas: [0.9, 0.999],
    eps: 1e-8,
    weightDecay: 0,
  };

  /** For tables with sparse gradients: bool, one flag per row; derived from the state. */
  readonly #touched = new Map<Tensor, Tensor>();

  /** The scaling of the step that is being started. */
  #scaling: GradientScaling | null = null;

  /** The op; AdamW has its own. */
  protected readonly op: string = 'aten::_fused_adam_';

  /**
   * @param parameters `model.parameters()`, or groups `{ params, lr, … }`
   * @throws RangeError, TypeError for settings out of range, or tensors that are not leaves
   */
  constructor(parameters: ParameterSource<AdamSettings>, options: Partial<AdamSettings> = {}) {
    super(parameters, options, new.target.defaults);
  }

  protected checkSettings({ lr, betas, eps, weightDecay }: AdamSettings): void {
    const owner = this.constructor.name;
    checkNonNegative(owner, 'lr', lr);
    if (!Array.isArray(betas) || betas.length !== 2) {
      throw new TypeError(`${owner}: betas must be two numbers, got ${describe(betas)}`);
    }
    checkBeta(owner, 'betas[0]', betas[0]);
    checkBeta(owner, 'betas[1]', betas[1]);
    checkNonNegative(owner, 'eps', eps);
    checkNonNegative(owner, 'weightDecay', weightDecay);
  }

  protected initialState(parameter: Tensor): ParameterState {
    return {
      // The kernel takes the number of steps as a float32 scalar on the parameter's device.
      step: zeros([], { dtype: 'float32', device: parameter.device }),
      exp_avg: zerosLike(parameter),
      exp_avg_sq: zerosLike(parameter),
    };
  }

  protected updateGroup(
    group: ParameterGroup<AdamSettings>,
    updates: readonly Update[],
    inBackground: boolean,
  ): Promise<unknown>[] {
    // One call of the kernel takes one dtype on one device.
    const batches = new Map<string, Update[]>();
    const jobs: Promise<unknown>[] = [];
    for (const update of updates) {
      if (update.gradient.isSparse) {
        jobs.push(...this.updateRows(group, update, inBackground));
        continue;
      }
      // A dense step changes rows that had no sparse gradient.
      this.#forgetTouched(update.parameter);
      const kind = `${update.parameter.dtype} ${update.parameter.device}`;
      const batch = batches.get(kind);
      if (batch === undefined) batches.set(kind, [update]);
      else batch.push(update);
    }
    const scaling = this.#scaling;
    const denseJobs = [...batches.values()].flatMap((batch) => {
      const states = batch.map(({ parameter }) => this.stateOf(parameter));
      const steps = states.map(({ step }) => step);
      const rate = scaling?.rates?.[this.paramGroups.indexOf(group)];
      const fused = [
        rate === undefined ? this.op : `${this.op}.tensor_lr`,
        batch.map(({ parameter }) => parameter),
        batch.map(({ gradient }) => gradient),
        states.map(({ exp_avg }) => exp_avg),
        states.map(({ exp_avg_sq }) => exp_avg_sq),
        [],
        steps,
        {
          lr: rate ?? group.lr,
          beta1: group.betas[0],
          beta2: group.betas[1],
          weight_decay: group.weightDecay,
          eps: group.eps,
          amsgrad: false,
          maximize: false,
          ...(scaling === null ? {} : { grad_scale: scaling.divisor, found_inf: scaling.fault }),
        },
      ] as const;
      // A skipped step does not count.
      if (scaling === null) call('aten::_foreach_add_.Scalar', steps, 1);
      else call('aten::_foreach_add_.Tensor', steps, scaling.fault.mul(-1).add(1));
      if (inBackground) return [callAsync(...fused)];
      call(...fused);
      return [];
    });
    return [...jobs, ...denseJobs];
  }

  /**
   * {@link Optimizer.stepAsync} with gradients that are scaled first, or skipped if they are not
   * finite, without reading anything from a GPU before the step.
   *
   * @internal
   */
  async stepScaledAsync(scaling: GradientScaling): Promise<void> {
    this.#scaling = scaling;
    try {
      // It starts immediately, and does not read the scaling after that.
      const done = this.stepAsync();
      this.#scaling = null;
      await done;
    } finally {
      this.#scaling = null;
    }
  }

  /** {@link Adam.stepScaledAsync} on this thread, to be recorded. @internal */
  stepScaled(scaling: GradientScaling): void {
    this.#scaling = scaling;
    try {
      this.step();
    } finally {
      this.#scaling = null;
    }
  }

  /** Sparse gradients need a step that leaves rows without gradient unchanged. */
  protected override takesSparse(group: ParameterGroup<AdamSettings>, gradient: Tensor): boolean {
    // Weight decay changes every row.
    return group.weightDecay === 0 && this.#scaling === null && hasRowUpdate(gradient);
  }

  /** Updates a table with the gradients of some rows; the result is that of dense Adam. */
  private updateRows(
    group: ParameterGroup<AdamSettings>,
    { parameter, gradient }: Update,
    inBackground: boolean,
  ): Promise<unknown>[] {
    const {
      step,
      exp_avg: mean,
      exp_avg_sq: squares,
    } = this.stateOf(parameter) as unknown as AdamState;
    call('aten::add_.Scalar', step, 1);
    const rows = [
      'torchformer::adam_rows_',
      parameter,
      gradient,
      mean,
      squares,
      this.#touchedRows(parameter, mean, squares),
      step,
      { lr: group.lr, beta1: group.betas[0], beta2: group.betas[1], eps: group.eps },
    ] as const;
    if (inBackground) return [callAsync(...rows)];
    call(...rows);
    return [];
  }

  /** Flags of the rows that have had a gradient, so that their moments are not zero. */
  #touchedRows(parameter: Tensor, mean: Tensor, squares: Tensor): Tensor {
    let touched = this.#touched.get(parameter);
    if (touched === undefined) {
      touched = keep(tidy(() => mean.ne(0).logicalOr(squares.ne(0)).any(1)));
      this.#touched.set(parameter, touched);
    }
    return touched;
  }

  #forgetTouched(parameter: Tensor): void {
    this.#touched.get(parameter)?.dispose();
    this.#touched.delete(parameter);
  }

  #forgetAllTouched(): void {
    for (const parameter of [...this.#touched.keys()]) this.#forgetTouched(parameter);
  }

  override loadStateDict(state: OptimizerState<AdamSettings>): void {
    super.loadStateDict(state);
    this.#forgetAllTouched();
  }

  override dispose(): void {
    super.dispose();
    this.#forgetAllTouched();
  }
}

/** Adam with decoupled weight decay (Loshchilov and Hutter 2019), 0.01 by default. */
export class AdamW extends Adam {
  static override readonly defaults: AdamSettings = { ...Adam.defaults, weightDecay: 0.01 };

  protected override readonly op: string = 'aten::_fused_adamw_';
}

function checkBeta(owner: string, name: string, value: unknown): void {
  if (checkNonNegative(owner, name, value) < 1) return;
  throw new RangeError(`${owner}: ${name} must be from 0 to below 1, got ${String(value)}`);
}
