import { checkChoice, checkInteger, checkOptions, orDefault } from '../../runtime/arguments.js';
import { formatShape } from '../../tensor/check.js';
import { arange, stack } from '../../tensor/create.js';
import type { Device } from '../../tensor/device.js';
import { native } from '../../tensor/dispatch.js';
import type { DType } from '../../tensor/dtype.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkFeatures } from '../check.js';
import { Dropout } from './dropout.js';
import { Module } from '../module/module.js';
import type { BufferForm } from '../module/module.js';
import { Buffer } from '../module/parameter.js';
import { checkPackedRows, type PackedSequences } from '../packed/packedSequences.js';
import { checkPositions, positionRows } from './positionTable.js';
import { rememberRegistered } from '../module/registration.js';

/** Options of {@link PositionalEncoding}. */
export interface PositionalEncodingOptions {
  /** dropout of the sum; default 0.1 (paper, section 5.4; seed 001) */
  dropout?: number;
  /** number of positions in the table; default 200 (seed 001) */
  maxLen?: number;
  /** default `'paired'` (paper, section 3.5; seed 001) */
  formula?: PositionFormula;
}

/** The angle of each feature, see {@link PositionalEncoding}. */
export type PositionFormula = 'paired' | 'perColumn';

/**
 * Adds sines and cosines of the position to each vector, then applies dropout. Even features are
 * sines and odd features are cosines of the angle position / 10000^e, where for feature i of
 * d = dModel
 *
 * - `'paired'` (paper, section 3.5; seed 001): e = 2⌊i/2⌋ / d, a sine and a cosine of each angle;
 * - `'perColumn'` (seed 002): e = i / d, a different angle for each feature.
 *
 * If dModel is odd, the last sine has no matching cosine.
 */
export class PositionalEncoding extends Module {
  static override readonly takesPackedRows: boolean = true;

  /** Applied to the sum of vectors and positions (paper, section 5.4). */
  dropout: Dropout;
  /** The table `[1, maxLen, dModel]`, computed in float64 and rounded to the module's dtype. */
  pe: Buffer;
  /** Size of the vectors. */
  readonly dModel: number;
  /** The angle of each feature. */
  readonly formula: PositionFormula;

  /** @throws RangeError, TypeError for an invalid size or option */
  constructor(dModel: number, options: PositionalEncodingOptions = {}) {
    super();
    checkOptions('PositionalEncoding', options, ['dropout', 'maxLen', 'formula']);
    this.dModel = checkInteger('PositionalEncoding', 'dModel', dModel, 1);
    const maxLen = checkInteger('PositionalEncoding', 'maxLen', orDefault(options.maxLen, 200), 1);
    this.formula = checkChoice(
      'PositionalEncoding',
      'formula',
      orDefault(options.formula, 'paired'),
      ['paired', 'perColumn'],
    );
    this.dropout = new Dropout(orDefault(options.dropout, 0.1));
    this.pe = tidy(() => new Buffer(this.table(maxLen, 'float32', 'cpu')));
    rememberRegistered(this);
  }

  /** Number of positions in the table. */
  get maxLen(): number {
    return this.pe.shape[1] as number;
  }

  /**
   * Extends the table to `maxLen` positions if it is shorter; its values are computed, not learned.
   * @throws RangeError, TypeError unless `maxLen` is a positive integer
   */
  grow(maxLen: number): this {
    checkInteger('PositionalEncoding.grow', 'maxLen', maxLen, 1);
    if (maxLen > this.maxLen) {
      const { dtype, device } = this.pe;
      tidy(() => native().setData(this.pe, this.table(maxLen, dtype, device)));
    }
    return this;
  }

  protected override deriveBuffer(
    property: string,
    { shape, dtype, device }: BufferForm,
  ): Tensor | null {
    const [one, length, width] = shape;
    if (property !== 'pe' || shape.length !== 3 || one !== 1 || width !== this.dModel) return null;
    return this.table(length as number, dtype, device);
  }

  protected override extraDescription(): string {
    const formula = this.formula === 'paired' ? '' : `, formula='${this.formula}'`;
    return `dModel=${this.dModel}, maxLen=${this.maxLen}${formula}`;
  }

  private table(length: number, dtype: DType, device: Device): Tensor {
    return sinusoidTable(length, this.dModel, this.formula, { dtype, device });
  }

  /**
   * @param input `[B, S, dModel]`
   * @returns the same shape
   * @throws RangeError if S is larger than the table
   */
  override forward(input: Tensor): Tensor {
    checkFeatures('PositionalEncoding', 'input', input, this.dModel, this.pe);
    const shape = input.shape;
    if (shape.length !== 3) {
      throw new RangeError(
        `PositionalEncoding: input must be [B, S, ${this.dModel}], got ${formatShape(shape)}`,
      );
    }
    const length = shape[1] as number;
    checkPositions('PositionalEncoding', length, this.maxLen, `, or call grow(${length})`);
    return tidy(() => this.dropout.forward(input.add(this.pe.narrow(1, 0, length))));
  }

  /**
   * {@link PositionalEncoding.forward} for a batch without padding.
   *
   * @param input `[tokens, dModel]`, the rows of `sequences`
   * @returns the same shape
   * @throws RangeError if a sequence is longer than the table, or the number of rows is wrong
   */
  forwardPacked(input: Tensor, sequences: PackedSequences): Tensor {
    checkFeatures('PositionalEncoding', 'input', input, this.dModel, this.pe);
    checkPackedRows('PositionalEncoding', 'input', input, sequences);
    const { longest } = sequences;
    checkPositions('PositionalEncoding', longest, this.maxLen, `, or call grow(${longest})`);
    return tidy(() => this.dropout.forward(input.add(positionRows(this.pe, sequences))));
  }
}

/** The table `[1, length, dModel]`, in the precision of `dtype`. */
export function sinusoidTable(
  length: number,
  dModel: number,
  formula: PositionFormula,
  form: { dtype: DType; device: Device },
): Tensor {
  return tidy(() => {
    const position = arange(length).to({ dtype: 'float64' }).unsqueeze(1);
    const pairs = Math.ceil(dModel / 2);
    const angleOf = (feature: Tensor) => position.mul(feature.mul(-Math.log(10000) / dModel).exp());
    const even = arange(pairs).to({ dtype: 'float64' }).mul(2);
    const sines = angleOf(even).sin();
    const cosines = angleOf(formula === 'paired' ? even : even.add(1)).cos();
    // In memory, each row of [length, pairs, 2] is sin, cos, sin, cos, …
    const table = stack([sines, cosines], 2).reshape(1, length, 2 * pairs);
    return table.narrow(2, 0, dModel).contiguous().to(form);
  });
}
