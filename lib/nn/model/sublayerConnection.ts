import { checkChoice, checkOptions, describe, orDefault } from '../../runtime/arguments.js';
import type { Tensor } from '../../tensor/tensor.js';
import { Dropout } from '../layers/dropout.js';
import { Module } from '../module/module.js';
import { checkedNorm, makeNorm } from '../layers/norm.js';
import type { Norm, NormConfig, NormOptions } from '../layers/norm.js';
import { rememberRegistered } from '../module/registration.js';
import { inStream, ResidualStream, takesStream } from './residualStream.js';

/** Where the norm is: on a sublayer's input, or on the residual sum. */
export type NormOrder = 'pre' | 'post';

/** Options of {@link SublayerConnection}, and of the layers made of them. */
export interface SublayerConnectionOptions {
  /** of the sublayer's result; default 0.1 (paper, section 5.4; seed 001) */
  dropout?: number;
  /** default `'pre'` (the seeds); the paper's is `'post'` */
  order?: NormOrder;
  /** default: seed 001's LayerNorm (population deviation, eps 1e-6 inside the root) */
  norm?: NormOptions;
}

/**
 * A residual connection around any sublayer, with a norm before or behind:
 *
 * - `'pre'`: x + dropout(sublayer(norm(x))), seed 001's and the default;
 * - `'post'`: norm(x + dropout(sublayer(x))), the paper's (sections 3.1 and 5.4).
 */
export class SublayerConnection extends Module {
  static {
    takesStream(this);
  }

  static override readonly takesPackedRows: boolean = true;

  /** Of the sublayer's input (`'pre'`) or of the residual sum (`'post'`), `[…, size]`. */
  norm: Norm;
  /** Of the sublayer's result, before it is added (paper, section 5.4). */
  dropout: Dropout;
  /** Where the norm is. */
  readonly order: NormOrder;
  /** The choice behind `norm`, complete. */
  readonly normConfig: NormConfig;

  /**
   * @param size dModel
   * @throws TypeError, RangeError for an unknown or misfit option
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
   * @param sublayer any module or function from `[B, S, size]` to the same shape
   * @returns `[B, S, size]`
   * @throws TypeError for a sublayer that is neither, or gives no tensor; RangeError, TypeError for
   *   an input that the norm refuses
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

/** What a {@link SublayerConnection} is put around: a module, or a function of the normed input. */
export type Sublayer =
  | {
      /** From the normed input to what is added to the input, of the same shape. */
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
