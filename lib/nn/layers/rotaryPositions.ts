import { checkInteger, checkOptions, orDefault } from '../../runtime/arguments.js';
import { formatShape } from '../../tensor/check.js';
import { stack } from '../../tensor/create.js';
import type { Device } from '../../tensor/device.js';
import { native } from '../../tensor/dispatch.js';
import type { DType } from '../../tensor/dtype.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkFeatures } from '../check.js';
import { Module } from '../module/module.js';
import type { BufferForm } from '../module/module.js';
import { Buffer } from '../module/parameter.js';
import { sinusoidTable } from './positionalEncoding.js';
import { checkPositions } from './positionTable.js';
import { rememberRegistered } from '../module/registration.js';

/** Options of {@link RotaryPositions}. */
export interface RotaryPositionsOptions {
  /** number of positions in the table; default 200 */
  maxLen?: number;
}

/**
 * Rotary position embedding (Su et al. 2021, section 3.2): rotates each pair of adjacent features
 * (2i, 2i + 1) of a head's queries and keys by the angle position / 10000^(2i/size), so that
 * their dot product depends only on the distance of their positions.
 *
 * Has no parameters and no entries in state dicts.
 */
export class RotaryPositions extends Module {
  /** Sines and cosines of the angles, alternating, `[1, maxLen, size]`, as in PositionalEncoding. */
  table: Buffer;
  /** Number of features of a head. */
  readonly size: number;

  /**
   * @param size number of features of a head, even
   * @throws RangeError if `size` is odd
   */
  constructor(size: number, options: RotaryPositionsOptions = {}) {
    super();
    const owner = 'RotaryPositions';
    checkOptions(owner, options, ['maxLen']);
    this.size = checkInteger(owner, 'size', size, 1);
    if (size % 2 !== 0) {
      throw new RangeError(
        `${owner}: size must be even, because features are rotated in pairs, got ${size}`,
      );
    }
    const maxLen = checkInteger(owner, 'maxLen', orDefault(options.maxLen, 200), 1);
    const data = () => this.angles(maxLen, 'float32', 'cpu');
    this.table = tidy(() => new Buffer(data(), { persistent: false }));
    rememberRegistered(this);
  }

  /** Number of positions in the table. */
  get maxLen(): number {
    return this.table.shape[1] as number;
  }

  /**
   * Extends the table to `maxLen` positions if it is shorter.
   * @throws RangeError, TypeError unless `maxLen` is a positive integer
   */
  grow(maxLen: number): this {
    checkInteger('RotaryPositions.grow', 'maxLen', maxLen, 1);
    if (maxLen > this.maxLen) {
      const { dtype, device } = this.table;
      tidy(() => native().setData(this.table, this.angles(maxLen, dtype, device)));
    }
    return this;
  }

  /**
   * @param input queries or keys `[…, S, size]`, for positions 0 to S - 1
   * @returns the same shape
   * @throws RangeError if S is larger than the table
   */
  override forward(input: Tensor): Tensor {
    const owner = 'RotaryPositions';
    checkFeatures(owner, 'input', input, this.size, this.table);
    const shape = input.shape;
    if (shape.length < 2) {
      throw new RangeError(
        `${owner}: input must be […, S, ${this.size}], got ${formatShape(shape)}`,
      );
    }
    const length = shape.at(-2) as number;
    checkPositions(owner, length, this.maxLen, `, or call grow(${length})`);
    return tidy(() => {
      const pairs = this.table.select(0, 0).narrow(0, 0, length).view(length, -1, 2);
      const [sine, cosine] = [pairs.select(-1, 0), pairs.select(-1, 1)] as const;
      const halves = input.reshape(...shape.slice(0, -1), -1, 2);
      const [first, second] = [halves.select(-1, 0), halves.select(-1, 1)] as const;
      const rotated = [
        first.mul(cosine).sub(second.mul(sine)),
        second.mul(cosine).add(first.mul(sine)),
      ];
      return stack(rotated, -1).reshape(...shape);
    });
  }

  protected override deriveBuffer(
    property: string,
    { shape, dtype, device }: BufferForm,
  ): Tensor | null {
    return property === 'table' ? this.angles(shape[1] as number, dtype, device) : null;
  }

  private angles(length: number, dtype: DType, device: Device): Tensor {
    return sinusoidTable(length, this.size, 'paired', { dtype, device });
  }

  protected override extraDescription(): string {
    return `size=${this.size}, maxLen=${this.maxLen}`;
  }
}
