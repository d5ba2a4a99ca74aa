/** How the time of a run is shared out. */

/** A part is not begun with less than this many seconds: it would only be cut off. */
export const leastSeconds = 3;

/** Seconds kept back for ending what runs and for writing the results. */
export const reserve = 5;

/** The end of a run, by which every part must be done. */
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

  /** Seconds that are left, the reserve taken off; never below 0. */
  remaining(): number {
    return Math.max(0, this.#end - this.#now() - reserve);
  }

  /** Seconds that a part with a limit of its own may take; null when it is not worth beginning. */
  allow(limit: number): number | null {
    const allowed = Math.min(limit, this.remaining());
    return allowed < leastSeconds ? null : allowed;
  }
}
