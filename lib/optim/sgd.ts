import { checkNonNegative } from '../runtime/arguments.js';
import { zerosLike } from '../tensor/create.js';
import type { Tensor } from '../tensor/tensor.js';
import { Optimizer } from './optimizer.js';
import type {
  BaseSettings,
  ParameterGroup,
  ParameterSource,
  ParameterState,
  Update,
} from './optimizer.js';

/** Settings of {@link SGD}; the defaults are PyTorch's. */
export interface SGDSettings extends BaseSettings {
  /** learning rate; default 1e-3 */
  lr: number;
  /** momentum factor, the part of the last update that is kept; default 0 */
  momentum: number;
  /** factor of the parameter that is added to the gradient; default 0 */
  weightDecay: number;
}

/**
 * Gradient descent, optionally with momentum: `v = momentum · v + g`, `p = p - lr · v`, where g is
 * the gradient plus weightDecay · p.
 */
export class SGD extends Optimizer<SGDSettings> {
  /**
   * @param parameters `model.parameters()`, or groups `{ params, lr, … }`
   * @throws RangeError, TypeError for settings out of range, or tensors that are not leaves
   */
  constructor(parameters: ParameterSource<SGDSettings>, options: Partial<SGDSettings> = {}) {
    super(parameters, options, { lr: 1e-3, momentum: 0, weightDecay: 0 });
  }

  protected checkSettings({ lr, momentum, weightDecay }: SGDSettings): void {
    checkNonNegative('SGD', 'lr', lr);
    checkNonNegative('SGD', 'momentum', momentum);
    checkNonNegative('SGD', 'weightDecay', weightDecay);
  }

  protected initialState(parameter: Tensor): ParameterState {
    return { momentum_buffer: zerosLike(parameter) };
  }

  protected override keepsState({ momentum }: ParameterGroup<SGDSettings>): boolean {
    return momentum !== 0;
  }

  protected updateGroup(
    { lr, momentum, weightDecay }: ParameterGroup<SGDSettings>,
    updates: readonly Update[],
  ): Promise<unknown>[] {
    for (const { parameter, gradient } of updates) {
      let direction =
        weightDecay === 0 ? gradient : gradient.add(parameter, { alpha: weightDecay });
      if (momentum !== 0) {
        const buffer = this.stateOf(parameter)['momentum_buffer'] as Tensor;
        direction = buffer.mul_(momentum).add_(direction);
      }
      parameter.add_(direction, { alpha: -lr });
    }
    return [];
  }
}
