/** How the time of a run is divided. */

/** A part is not started with fewer seconds left: it would only be interrupted. */
export const leastSeconds = 3;

/** Seconds reserved for stopping processes and writing the results. */
export const reserve = 5;

/** The end of a run, by which every part must be finished. */
export class Deadline {
  readonly #end: number;
  readonly #now: () => number;

  /**
   * @param limit seconds from now
   * @param now the time in seconds
   */
  constructor(limit: number, now: () => number = () => performance.now() / 1000) {
    this.#now = now;
    this.#end = now() + limit;
  }

  /** Remaining seconds without the reserve; never below 0. */
  remaining(): number {
    return Math.max(0, this.#end - this.#now() - reserve);
  }

  /** Seconds that a part with this limit may take; null if it is not worth starting. */
  allow(limit: number): number | null {
    const allowed = Math.min(limit, this.remaining());
    return allowed < leastSeconds ? null : allowed;
  }
}
