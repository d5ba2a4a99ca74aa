import { checkChoice, checkOptions, describe, orDefault } from '../../runtime/arguments.js';
import type { Tensor } from '../../tensor/tensor.js';
import { Dropout } from '../layers/dropout.js';
import { Module } from '../module/module.js';
import { checkedNorm, makeNorm } from '../layers/norm.js';
import type { Norm, NormConfig, NormOptions } from '../layers/norm.js';
import { rememberRegistered } from '../module/registration.js';
import { inStream, ResidualStream, takesStream } from './residualStream.js';

/** Where the norm is: on the input of the sublayer, or on the residual sum. */
export type NormOrder = 'pre' | 'post';

/** Options of {@link SublayerConnection} and of the layers that use it. */
export interface SublayerConnectionOptions {
  /** dropout of the sublayer's output; default 0.1 (paper, section 5.4; seed 001) */
  dropout?: number;
  /** default `'pre'` (seeds); the paper's is `'post'` */
  order?: NormOrder;
  /** default: seed 001's LayerNorm (population variance, eps 1e-6 added to the variance) */
  norm?: NormOptions;
}

/**
 * A residual connection around any sublayer, with a norm before or after it:
 *
 * - `'pre'`: x + dropout(sublayer(norm(x))), seed 001's and the default;
 * - `'post'`: norm(x + dropout(sublayer(x))), the paper's (sections 3.1 and 5.4).
 */
export class SublayerConnection extends Module {
  static {
    takesStream(this);
  }

  static override readonly takesPackedRows: boolean = true;

  /** Norm of the sublayer's input (`'pre'`) or of the residual sum (`'post'`), `[…, size]`. */
  norm: Norm;
  /** Applied to the sublayer's output before it is added (paper, section 5.4). */
  dropout: Dropout;
  /** Where the norm is. */
  readonly order: NormOrder;
  /** The options of `norm`, with all defaults filled in. */
  readonly normConfig: NormConfig;

  /**
   * @param size dModel
   * @throws TypeError, RangeError for an unknown or invalid option
   */
  constructor(size: number, options: SublayerConnectionOptions = {}) {
    super();
    const owner = 'SublayerConnection';
    checkOptions(owner, options, ['dropout', 'order', 'norm']);
    this.order = checkChoice(owner, 'order', orDefault(options.order, 'pre'), ['pre', 'post']);
    this.normConfig = checkedNorm(owner, options.norm);
    this.norm = makeNorm(size, this.normConfig);
    this.dropout = new Dropout(orDefault(options.dropout, 0.1));
    rememberRegistered(this);
  }

  /**
   * @param input `[B, S, size]`
   * @param sublayer a module or function that maps `[B, S, size]` to the same shape
   * @returns `[B, S, size]`
   * @throws TypeError if `sublayer` is neither, or does not return a tensor; and the errors of the
   *   norm's forward
   */
  override forward(input: Tensor, sublayer: Sublayer): Tensor {
    const { order, norm, dropout } = this;
    const apply = asFunction(sublayer);
    return inStream(input, (x) => {
      if (order === 'post') {
        const residual = x.sum();
        return ResidualStream.adding(residual, apply(residual), dropout).normed(norm);
      }
      const { sum, normed } = x.sumAndNorm(norm);
      return ResidualStream.adding(sum, apply(normed), dropout);
    });
  }

  protected override extraDescription(): string {
    return this.order === 'pre' ? '' : `order='post'`;
  }
}

/** The sublayer of a {@link SublayerConnection}: a module, or a function of the normalized input. */
export type Sublayer =
  | {
      /** Maps the normalized input to a tensor of the same shape, which is added to the input. */
      forward(input: Tensor): Tensor;
    }
  | ((input: Tensor) => Tensor);

function asFunction(sublayer: Sublayer): (input: Tensor) => Tensor {
  if (typeof sublayer === 'function') return sublayer;
  const given = sublayer as Partial<typeof sublayer> | null | undefined;
  if (typeof given?.forward === 'function') return (input) => sublayer.forward(input);
  throw new TypeError(
    `SublayerConnection: sublayer must be a module or a function, got ${describe(sublayer)}`,
  );
}
