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

/** Options of {@link LearnedPositions}: those of `PositionalEncoding` except `formula`. */
export type LearnedPositionsOptions = Omit<PositionalEncodingOptions, 'formula'>;

/**
 * Adds a learned vector for each position (the alternative in section 3.5 of the paper; Gehring et
 * al. 2017), then applies dropout.
 */
export class LearnedPositions extends Module {
  static override readonly takesPackedRows: boolean = true;

  /** Applied to the sum of vectors and positions. */
  dropout: Dropout;
  /** The table `[1, maxLen, dModel]`, initialized from normal(0, 1) like an Embedding. */
  pe: Parameter;
  /** Size of the vectors. */
  readonly dModel: number;

  /** @throws RangeError, TypeError for an invalid size or option */
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
   * Does not grow the table, because the new positions would be untrained.
   * @throws TypeError if `maxLen` is larger than the table
   */
  grow(maxLen: number): this {
    checkInteger('LearnedPositions.grow', 'maxLen', maxLen, 1);
    if (maxLen <= this.maxLen) return this;
    throw new TypeError(
      `LearnedPositions.grow: the table has ${this.maxLen} learned positions and cannot grow to ` +
        `${maxLen}: the new ones would be untrained; create the model with { maxLen: ${maxLen} }`,
    );
  }

  /**
   * @param input `[B, S, dModel]`
   * @returns the same shape
   * @throws RangeError if S is larger than the table
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
   * @throws RangeError if a sequence is longer than the table, or the number of rows is wrong
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
