import { checkInteger, describe } from '../../runtime/arguments.js';

/**
 * A small seeded generator for the order of data: xoshiro128** (Blackman and Vigna), with its state
 * initialized by splitmix32. Its numbers depend only on the seed, never on the platform or on how
 * many random numbers the model has drawn, so a run can be repeated and resumed by seed and epoch.
 */
export class SeededRandom {
  private a: number;
  private b: number;
  private c: number;
  private d: number;

  /**
   * @param seed an integer from 0 to 2^53 - 1
   * @param stream selects independent sequences for one seed, such as one per epoch; default 0
   * @throws RangeError, TypeError if one of them is not such an integer
   */
  constructor(seed: number, stream = 0) {
    checkInteger('SeededRandom', 'seed', seed, 0);
    checkInteger('SeededRandom', 'stream', stream, 0);
    const mix = splitMix32(seed >>> 0);
    const words = [Math.floor(seed / 2 ** 32), stream >>> 0, Math.floor(stream / 2 ** 32)];
    // Each word passes through the mixer, so that adjacent seeds and epochs share no pattern.
    let state = mix(0);
    for (const word of words) state = mix(state ^ word);
    const fill = splitMix32(state);
    this.a = fill(0);
    this.b = fill(0);
    this.c = fill(0);
    // xoshiro never leaves the all-zero state.
    this.d = fill(0) | 1;
  }

  /** The next 32 random bits as an integer from 0 to 2^32 - 1. */
  next(): number {
    const result = Math.imul(rotateLeft(Math.imul(this.b, 5), 7), 9) >>> 0;
    const shifted = this.b << 9;
    this.c ^= this.a;
    this.d ^= this.b;
    this.b ^= this.c;
    this.a ^= this.d;
    this.c ^= shifted;
    this.d = rotateLeft(this.d, 11);
    return result;
  }

  /**
   * A uniform integer from 0 to `limit` - 1.
   *
   * @param limit an integer from 1 to 2^32
   * @throws RangeError, TypeError if it is not such an integer
   */
  below(limit: number): number {
    checkInteger('SeededRandom.below', 'limit', limit, 1, 2 ** 32);
    // Values beyond the last whole multiple of the limit would favour low numbers.
    const end = 2 ** 32 - (2 ** 32 % limit);
    for (;;) {
      const bits = this.next();
      if (bits < end) return bits % limit;
    }
  }

  /** A uniformly random element of a non-empty list. */
  pick<T>(list: readonly T[]): T {
    checkList('SeededRandom.pick', 'list', list);
    if (list.length === 0) throw new RangeError('SeededRandom.pick: the list is empty');
    return list[this.below(list.length)] as T;
  }

  /** Shuffles in place (Fisher-Yates) and returns the same array. */
  shuffle<T extends unknown[] | Uint32Array>(array: T): T {
    checkList('SeededRandom.shuffle', 'array', array);
    for (let i = array.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      const kept = array[i];
      array[i] = array[j];
      array[j] = kept;
    }
    return array;
  }
}

function checkList(owner: string, name: string, value: unknown): void {
  if (Array.isArray(value) || (ArrayBuffer.isView(value) && 'length' in value)) return;
  throw new TypeError(`${owner}: ${name} must be an array, got ${describe(value)}`);
}

function rotateLeft(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}

/** splitmix32: each call adds a word and returns 32 well-mixed bits. */
function splitMix32(start: number): (word: number) => number {
  let state = start | 0;
  return (word) => {
    state = (state + word + 0x9e3779b9) | 0;
    let mixed = state ^ (state >>> 16);
    mixed = Math.imul(mixed, 0x21f0aaad);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  };
}
