// @ts-check
// The progress of a native build, from what ninja or make prints.
'use strict';

/**
 * What a step costs, in seconds of one core: steps differ too much to be counted alone.
 *
 * @type {readonly (readonly [RegExp, number])[]}
 */
const costs = [
  [/cmake_pch/, 22],
  [/CXX object .*\/Unity\//, 16],
  [/CUDA object .*norm_kernel/, 35],
  [/CUDA object/, 6],
  [/CXX object/, 5],
];

/** @param {string} step */
function costOf(step) {
  return costs.find(([pattern]) => pattern.test(step))?.[1] ?? 0.2;
}

const ninjaStep = /^\[(\d+)\/(\d+)\] (.*)$/;
const makeStep = /^\[ *(\d+)%\] /;
/** What ninja and make print besides steps and the messages of compilers. */
const chatter =
  /^(ninja: (no work|Entering)|Consolidate compiler |Scanning dependencies |g?make\[|$)/;

class BuildProgress {
  /** @type {number} */ #stepCount;
  /** @type {number} */ #cost;
  #doneCost = 0;
  #counted = '';
  /** Of the whole work, from 0 to 1. */
  #done = 0;
  #lastStepAt = 0;

  /** @param {readonly string[]} planned the output of ninja's dry run; without it steps are counted */
  constructor(planned) {
    const steps = planned.flatMap((line) => ninjaStep.exec(line)?.[3] ?? []);
    this.#stepCount = steps.length;
    this.#cost = steps.reduce((sum, step) => sum + costOf(step), 0);
  }

  /** Whether a step was reported; none is if everything was up to date. */
  get hasBegun() {
    return this.#counted !== '';
  }

  /**
   * Takes a line of the build's output.
   *
   * @param {string} line
   * @param {number} seconds since the build began
   * @returns {boolean} whether the line is a message to show, e.g. a compiler's
   */
  take(line, seconds) {
    const ninja = ninjaStep.exec(line);
    const make = makeStep.exec(line);
    if (ninja === null && make === null) return !chatter.test(line);
    this.#lastStepAt = seconds;
    if (ninja !== null) {
      const [, number, count, step = ''] = ninja;
      this.#doneCost += costOf(step);
      this.#counted = `${number} of ${count} steps`;
      // A build that configures itself anew plans other steps than its dry run showed.
      const isPlanned = this.#stepCount === Number(count);
      this.#done = isPlanned ? this.#doneCost / this.#cost : Number(number) / Number(count);
    } else if (make !== null) {
      this.#counted = `${make[1]} %`;
      this.#done = Number(make[1]) / 100;
    }
    return false;
  }

  /**
   * E.g. `9 of 20 steps, 35 s, about 40 s left`.
   *
   * @param {number} seconds since the build began
   */
  describe(seconds) {
    const parts = [this.#counted, `${Math.round(seconds)} s`];
    // The first steps are too short to conclude from.
    if (this.#done >= 0.15) parts.push(left(this.#lastStepAt / this.#done - seconds));
    return parts.join(', ');
  }
}

/** @param {number} seconds */
function left(seconds) {
  if (seconds < 5) return 'a few seconds left';
  if (seconds < 100) return `about ${Math.ceil(seconds / 5) * 5} s left`;
  return `about ${Math.ceil(seconds / 60)} min left`;
}

module.exports = { BuildProgress };
