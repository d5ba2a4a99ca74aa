import { checkNonNegative, describe } from '../runtime/arguments.js';
import { zeros } from '../tensor/create.js';
import { call, callAsync } from '../tensor/dispatch.js';
import type { Tensor } from '../tensor/tensor.js';
import { Optimizer } from './optimizer.js';
import type {
  BaseSettings,
  ParameterGroup,
  ParameterSource,
  ParameterState,
  Update,
} from './optimizer.js';

/** Settings of {@link Adafactor}; the defaults are PyTorch's. */
export interface AdafactorSettings extends BaseSettings {
  /**
   * learning rate relative to the size of each parameter: an update has at most the root mean square
   * lr · max(eps[1], root mean square of the parameter); also at most 1/√step; default 1e-2
   */
  lr: number;
  /** power of the step that new squares are averaged with, at most 0; default -0.8 */
  beta2Decay: number;
  /**
   * lower bounds: of the variance and of the divisor of the update (null: the epsilon of the dtype),
   * and of the size of a parameter; default [null, 1e-3]; the paper: [1e-30, 1e-3]
   */
  eps: readonly [number | null, number];
  /** root mean square from which updates are scaled down, before lr, at least 1; default 1 */
  clipThreshold: number;
  /** factor, with lr, by which the parameter itself shrinks in a step; default 0 */
  weightDecay: number;
}

/**
 * Adafactor (Shazeer and Stern 2018) in PyTorch's form: the running squares of a matrix are stored as
 * one number per row and one per column, and there is no momentum, so the state takes almost no memory.
 * Vectors store the square of every element. One native op a parameter, without temporaries of its
 * size; the result equals `torch.optim.Adafactor`.
 *
 * The gradient of an embedding may be sparse: the result is that of the dense one.
 */
export class Adafactor extends Optimizer<AdafactorSettings> {
  /** PyTorch's defaults. */
  static readonly defaults: AdafactorSettings = {
    lr: 1e-2,
    beta2Decay: -0.8,
    eps: [null, 1e-3],
    clipThreshold: 1,
    weightDecay: 0,
  };

  /**
   * @param parameters `model.parameters()`, or groups `{ params, lr, … }`
   * @throws RangeError, TypeError for settings out of range, or tensors that are not leaves
   */
  constructor(
    parameters: ParameterSource<AdafactorSettings>,
    options: Partial<AdafactorSettings> = {},
  ) {
    super(parameters, options, new.target.defaults);
  }

  protected checkSettings(settings: AdafactorSettings): void {
    const owner = this.constructor.name;
    const { lr, beta2Decay, eps, clipThreshold, weightDecay } = settings;
    checkNonNegative(owner, 'lr', lr);
    if (typeof beta2Decay !== 'number' || !(beta2Decay <= 0 && beta2Decay > -Infinity)) {
      throw new RangeError(
        `${owner}: beta2Decay must be a finite number of at most 0, got ${describe(beta2Decay)}`,
      );
    }
    if (!Array.isArray(eps) || eps.length !== 2) {
      throw new TypeError(`${owner}: eps must be [number or null, number], got ${describe(eps)}`);
    }
    if (eps[0] !== null) checkNonNegative(owner, 'eps[0]', eps[0]);
    checkNonNegative(owner, 'eps[1]', eps[1]);
    if (checkNonNegative(owner, 'clipThreshold', clipThreshold) < 1) {
      throw new RangeError(`${owner}: clipThreshold must be at least 1, got ${clipThreshold}`);
    }
    checkNonNegative(owner, 'weightDecay', weightDecay);
  }

  protected initialState(parameter: Tensor): ParameterState {
    const { dtype, device } = parameter;
    const stateOf = (name: string) => zeros(this.stateShape(parameter, name), { dtype, device });
    // On the CPU, where the step can be read without waiting for a GPU.
    const step = zeros([], { dtype: 'float32' });
    if (parameter.ndim < 2) return { step, variance: stateOf('variance') };
    return { step, row_var: stateOf('row_var'), col_var: stateOf('col_var') };
  }

  protected override stateShape(parameter: Tensor, name: string): readonly number[] {
    const shape: readonly number[] = parameter.shape;
    if (name === 'row_var') return shape.with(-1, 1);
    return name === 'col_var' ? shape.with(-2, 1) : shape;
  }

  protected updateGroup(
    { lr, beta2Decay, eps, clipThreshold, weightDecay }: ParameterGroup<AdafactorSettings>,
    updates: readonly Update[],
    inBackground: boolean,
  ): Promise<unknown>[] {
    return updates.flatMap(({ parameter, gradient }) => {
      const state = this.stateOf(parameter);
      const step = state['step'] as Tensor;
      call('aten::add_.Scalar', step, 1);
      const update = [
        'torchformer::adafactor_',
        parameter,
        gradient,
        (state['row_var'] ?? state['variance']) as Tensor,
        state['col_var'] ?? null,
        step.item(),
        {
          lr,
          beta2_decay: beta2Decay,
          eps1: eps[0],
          eps2: eps[1],
          clip_threshold: clipThreshold,
          weight_decay: weightDecay,
        },
      ] as const;
      if (inBackground) return [callAsync(...update)];
      call(...update);
      return [];
    });
  }

  protected override takesSparse(
    _group: ParameterGroup<AdafactorSettings>,
    { ndim, dtype, device }: Tensor,
  ): boolean {
    return ndim === 2 && device === 'cpu' && (dtype === 'float32' || dtype === 'float64');
  }
}
