import { describe } from '../runtime/options.js';
import { call, callAsync } from '../tensor/dispatch.js';
import { zeros, zerosLike } from '../tensor/create.js';
import type { Tensor } from '../tensor/tensor.js';
import { checkFinite, checkLearningRate, Optimizer } from './optimizer.js';
import type {
  BaseSettings,
  ParameterGroup,
  ParameterSource,
  ParameterState,
  Update,
} from './optimizer.js';

/** Settings of {@link Adam}; the defaults are PyTorch's. */
export interface AdamSettings extends BaseSettings {
  /** learning rate; default 1e-3 */
  lr: number;
  /** decay of the running means of gradients and squares; default [0.9, 0.999]; the paper: [0.9, 0.98] */
  betas: readonly [number, number];
  /** added to the root of the mean square; default 1e-8; the paper: 1e-9 */
  eps: number;
  /** default 0 for Adam (added to the gradient), 0.01 for AdamW (shrinks the parameter itself) */
  weightDecay: number;
}

/**
 * Adam (Kingma and Ba 2015, algorithm 1; paper, section 5.3), by libtorch's fused kernel: one
 * native call for all parameters of a group.
 */
export class Adam extends Optimizer<AdamSettings> {
  /** PyTorch's. */
  static readonly defaults: AdamSettings = {
    lr: 1e-3,
    betas: [0.9, 0.999],
    eps: 1e-8,
    weightDecay: 0,
  };

  /** The kernel; AdamW has its own. */
  protected readonly op: string = 'aten::_fused_adam_';

  /**
   * @param parameters `model.parameters()`, or groups `{ params, lr, … }`
   * @throws RangeError, TypeError for settings out of range, or tensors that are no leaves
   */
  constructor(parameters: ParameterSource<AdamSettings>, options: Partial<AdamSettings> = {}) {
    super(parameters, options, new.target.defaults);
  }

  protected checkSettings({ lr, betas, eps, weightDecay }: AdamSettings): void {
    const owner = this.constructor.name;
    checkLearningRate(owner, lr);
    if (!Array.isArray(betas) || betas.length !== 2) {
      throw new TypeError(`${owner}: betas must be two numbers, got ${describe(betas)}`);
    }
    checkFinite(owner, 'betas[0]', betas[0], 1);
    checkFinite(owner, 'betas[1]', betas[1], 1);
    checkFinite(owner, 'eps', eps);
    checkFinite(owner, 'weightDecay', weightDecay);
  }

  protected initialState(parameter: Tensor): ParameterState {
    return {
      // The kernel wants the number of steps as a float32 scalar beside the parameter.
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
    for (const update of updates) {
      const kind = `${update.parameter.dtype} ${update.parameter.device}`;
      batches.set(kind, [...(batches.get(kind) ?? []), update]);
    }
    return [...batches.values()].flatMap((batch) => {
      const states = batch.map(({ parameter }) => this.stateOf(parameter));
      const steps = states.map(({ step }) => step);
      const fused = [
        this.op,
        batch.map(({ parameter }) => parameter),
        batch.map(({ gradient }) => gradient),
        states.map(({ exp_avg }) => exp_avg),
        states.map(({ exp_avg_sq }) => exp_avg_sq),
        [],
        steps,
        {
          lr: group.lr,
          beta1: group.betas[0],
          beta2: group.betas[1],
          weight_decay: group.weightDecay,
          eps: group.eps,
          amsgrad: false,
          maximize: false,
        },
      ] as const;
      call('aten::_foreach_add_.Scalar', steps, 1);
      if (inBackground) return [callAsync(...fused)];
      call(...fused);
      return [];
    });
  }
}

/** Adam with decoupled weight decay (Loshchilov and Hutter 2019), 0.01 by default. */
export class AdamW extends Adam {
  static override readonly defaults: AdamSettings = { ...Adam.defaults, weightDecay: 0.01 };

  protected override readonly op: string = 'aten::_fused_adamw_';
}
