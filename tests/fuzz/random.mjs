/** Repeatable choices: those of a case depend on the seed and on its number, not on other cases. */
export class Random {
  #state;

  constructor(seed, number) {
    // Neighbouring numbers must not give similar sequences.
    this.#state = (Math.imul(seed, 0x9e3779b1) ^ Math.imul(number + 1, 0x85ebca6b)) >>> 0;
    for (let i = 0; i < 4; i++) this.#next();
  }

  #next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return (bits ^ (bits >>> 14)) >>> 0;
  }

  /** An integer from 0 to below `limit`. */
  below(limit) {
    return this.#next() % limit;
  }

  /** True in `percent` of 100 cases. */
  chance(percent) {
    return this.below(100) < percent;
  }

  pick(list) {
    return list[this.below(list.length)];
  }

  /** From `least` to `most` values that `make` gives. */
  list(least, most, make) {
    return Array.from({ length: least + this.below(most - least + 1) }, (_, index) => make(index));
  }
}
