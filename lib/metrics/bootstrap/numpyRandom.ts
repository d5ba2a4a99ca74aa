/** The random integers of NumPy's default generator, so that resamples are those of sacrebleu. */

const word = 0xffff_ffff;
const multiplier = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645n;

/**
 * PCG64 (O'Neill, 2014), seeded by NumPy's SeedSequence: `numpy.random.default_rng(seed)`.
 *
 * @param seed an integer from 0 to 2^53 - 1
 */
export class NumpyRandom {
  #state: bigint;
  readonly #increment: bigint;
  /** The upper half of the last 64 bits, which is the next 32; null: it has been used. */
  #rest: number | null = null;

  constructor(seed: number) {
    const words = seedWords(seed, 8).map(BigInt) as [bigint, bigint, bigint, bigint, ...bigint[]];
    const pair = (index: number) =>
      ((words[index + 1] as bigint) << 32n) | (words[index] as bigint);
    const start = (pair(0) << 64n) | pair(2);
    this.#increment = BigInt.asUintN(128, (((pair(4) << 64n) | pair(6)) << 1n) | 1n);
    // From the state 0: a step, the seed, and another step.
    this.#state = BigInt.asUintN(128, this.#increment + start);
    this.#step();
  }

  /**
   * A uniform integer from 0 to `limit` - 1 (Lemire, 2019).
   *
   * @param limit from 1 to 2^21, so that the products below are exact
   */
  below(limit: number): number {
    if (limit === 1) return 0;
    const least = 2 ** 32 % limit;
    for (;;) {
      const product = this.#next32() * limit;
      if (product % 2 ** 32 >= least) return Math.floor(product / 2 ** 32);
    }
  }

  #step(): void {
    this.#state = BigInt.asUintN(128, this.#state * multiplier + this.#increment);
  }

  #next32(): number {
    if (this.#rest !== null) {
      const rest = this.#rest;
      this.#rest = null;
      return rest;
    }
    this.#step();
    const folded = BigInt.asUintN(64, (this.#state >> 64n) ^ this.#state);
    const turn = this.#state >> 122n;
    const bits = BigInt.asUintN(64, (folded >> turn) | (folded << (64n - turn)));
    this.#rest = Number(bits >> 32n);
    return Number(BigInt.asUintN(32, bits));
  }
}

/** NumPy's `SeedSequence(seed).generate_state(count)`. */
function seedWords(seed: number, count: number): number[] {
  const low = seed >>> 0;
  const high = Math.floor(seed / 2 ** 32);
  const entropy = high === 0 ? [low] : [low, high];
  const hash = hasher(0x43b0_d7e5, 0x931e_8875);
  const pool = Array.from({ length: 4 }, (_, index) => hash(entropy[index] ?? 0));
  for (let from = 0; from < pool.length; from++) {
    for (let to = 0; to < pool.length; to++) {
      if (from !== to) pool[to] = mixed(pool[to] as number, hash(pool[from] as number));
    }
  }
  const draw = hasher(0x8b51_f9dd, 0x58f3_8ded);
  return Array.from({ length: count }, (_, index) => draw(pool[index % pool.length] as number));
}

/** A hash whose constant changes with every call. */
function hasher(start: number, factor: number): (value: number) => number {
  let constant = start;
  return (value) => {
    const changed = value ^ constant;
    constant = Math.imul(constant, factor);
    return folded(Math.imul(changed, constant));
  };
}

function mixed(a: number, b: number): number {
  return folded(Math.imul(a, 0xca01_f9dd) - Math.imul(b, 0x4973_f715));
}

function folded(value: number): number {
  const bits = value & word;
  return (bits ^ (bits >>> 16)) >>> 0;
}
