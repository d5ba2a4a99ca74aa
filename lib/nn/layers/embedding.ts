import { checkInteger } from '../../runtime/arguments.js';
import { empty } from '../../tensor/create.js';
import { callTensor } from '../../tensor/dispatch.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkIds, checkSameDevice } from '../check.js';
import { normal_ } from '../module/init.js';
import { Module } from '../module/module.js';
import { checkIdRange } from '../idRange.js';
import { Parameter } from '../module/parameter.js';
import { rememberRegistered } from '../module/registration.js';

/** A table of vectors looked up by id, like `torch.nn.Embedding`. */
export class Embedding extends Module {
  static override readonly takesPackedRows: boolean = true;

  /** `[count, dimension]` */
  weight: Parameter;
  /** Number of ids, which are the rows of the table. */
  readonly count: number;
  /** Size of each vector. */
  readonly dimension: number;
  /**
   * Whether the gradient of the weight contains only the rows that were looked up
   * (`weight.grad.isSparse`), so that the cost does not depend on the size of the table. Our
   * optimizers and `clipGradNorm` accept both; `Trainer` sets it to true for its own Adam. Default
   * false, as in PyTorch.
   */
  sparseGradient = false;

  /**
   * The table is initialized from normal(0, 1) (PyTorch's default).
   *
   * @param count number of ids, 0 to count - 1
   * @param dimension size of each vector
   * @throws RangeError unless both are positive integers
   */
  constructor(count: number, dimension: number) {
    super();
    this.count = checkInteger('Embedding', 'count', count, 1);
    this.dimension = checkInteger('Embedding', 'dimension', dimension, 1);
    this.weight = normal_(tidy(() => new Parameter(empty([count, dimension]))));
    rememberRegistered(this);
  }

  /**
   * @param ids int64 or int32, any shape `[…]`
   * @returns `[…, dimension]`
   * @throws RangeError if an id is outside the table
   */
  override forward(ids: Tensor): Tensor {
    checkIds('Embedding', 'ids', ids);
    checkSameDevice('Embedding', 'ids', ids, 'the weights', this.weight);
    checkIdRange('Embedding', 'ids', ids, this.count);
    // padding_idx: -1 (none), scale_grad_by_freq: false
    return this.sparseGradient
      ? callTensor('aten::embedding', this.weight, ids, -1, false, true)
      : callTensor('aten::embedding', this.weight, ids);
  }

  protected override extraDescription(): string {
    return `${this.count}, ${this.dimension}`;
  }
}
