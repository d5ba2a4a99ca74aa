import { checkInteger, checkOptions, orDefault } from '../../runtime/arguments.js';
import { formatShape } from '../../tensor/check.js';
import { empty } from '../../tensor/create.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkFeatures } from '../check.js';
import { Dropout } from './dropout.js';
import { normal_ } from '../module/init.js';
import { Module } from '../module/module.js';
import { Parameter } from '../module/parameter.js';
import type { PositionalEncodingOptions } from './positionalEncoding.js';
import { checkPackedRows, type PackedSequences } from '../packed/packedSequences.js';
import { checkPositions, positionRows } from './positionTable.js';
import { rememberRegistered } from '../module/registration.js';

/** Options of {@link LearnedPositions}, as of `PositionalEncoding` (whose formula it has not). */
export type LearnedPositionsOptions = Omit<PositionalEncodingOptions, 'formula'>;

/**
 * Adds a learned vector for each position (paper, section 3.5, as the alternative that it tried;
 * Gehring et al. 2017), then drops out.
 */
export class LearnedPositions extends Module {
  static override readonly takesPackedRows: boolean = true;

  /** Of the sum of vectors and positions. */
  dropout: Dropout;
  /** The table `[1, maxLen, dModel]`, starts as normal(0, 1), as an Embedding does. */
  pe: Parameter;
  /** Size of the vectors. */
  readonly dModel: number;

  /** @throws RangeError, TypeError for a size or option out of range */
  constructor(dModel: number, options: LearnedPositionsOptions = {}) {
    super();
    const owner = 'LearnedPositions';
    checkOptions(owner, options, ['dropout', 'maxLen']);
    this.dModel = checkInteger(owner, 'dModel', dModel, 1);
    const maxLen = checkInteger(owner, 'maxLen', orDefault(options.maxLen, 200), 1);
    this.dropout = new Dropout(orDefault(options.dropout, 0.1));
    this.pe = normal_(tidy(() => new Parameter(empty([1, maxLen, dModel]))));
    rememberRegistered(this);
  }

  /** Number of positions in the table. */
  get maxLen(): number {
    return this.pe.shape[1] as number;
  }

  /**
   * Positions that were never trained mean nothing, so the table does not grow.
   * @throws TypeError when more positions are asked for than there are
   */
  grow(maxLen: number): this {
    checkInteger('LearnedPositions.grow', 'maxLen', maxLen, 1);
    if (maxLen <= this.maxLen) return this;
    throw new TypeError(
      `LearnedPositions.grow: the table has ${this.maxLen} learned positions and cannot be ` +
        `made ${maxLen} long: the new ones would be untrained; make the model with { maxLen: ${maxLen} }`,
    );
  }

  /**
   * @param input `[B, S, dModel]`
   * @returns the same shape
   * @throws RangeError naming S and the table's length when S is longer
   */
  override forward(input: Tensor): Tensor {
    checkFeatures('LearnedPositions', 'input', input, this.dModel, this.pe);
    const shape = input.shape;
    if (shape.length !== 3) {
      throw new RangeError(
        `LearnedPositions: input must be [B, S, ${this.dModel}], got ${formatShape(shape)}`,
      );
    }
    const length = shape[1] as number;
    checkPositions('LearnedPositions', length, this.maxLen);
    return tidy(() => this.dropout.forward(input.add(this.pe.narrow(1, 0, length))));
  }

  /**
   * {@link LearnedPositions.forward} for a batch without padding.
   *
   * @param input `[tokens, dModel]`, the rows of `sequences`
   * @returns the same shape
   * @throws RangeError when a sequence is longer than the table, or the rows are not as many
   */
  forwardPacked(input: Tensor, sequences: PackedSequences): Tensor {
    checkFeatures('LearnedPositions', 'input', input, this.dModel, this.pe);
    checkPackedRows('LearnedPositions', 'input', input, sequences);
    const { longest } = sequences;
    checkPositions('LearnedPositions', longest, this.maxLen);
    return tidy(() => this.dropout.forward(input.add(positionRows(this.pe, sequences))));
  }

  protected override extraDescription(): string {
    return `dModel=${this.dModel}, maxLen=${this.maxLen}`;
  }
}
