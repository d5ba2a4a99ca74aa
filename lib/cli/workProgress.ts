/** Progress of the work before training, with the estimated remaining time. */
import { clockTime, ProgressLine, type ProgressStream } from '../train/run/progressLine.js';

export class WorkProgress {
  readonly #line: ProgressLine;
  readonly #now: () => number;
  #what = '';
  #start = 0;

  /** @param now clock in milliseconds */
  constructor(
    stream: ProgressStream = process.stderr,
    now: () => number = () => performance.now(),
  ) {
    this.#line = new ProgressLine(stream, now);
    this.#now = now;
  }

  /** @param what describes the current work, to which the remaining time refers */
  update(what: string, done: number, total: number): void {
    const now = this.#now();
    if (what !== this.#what) {
      this.#what = what;
      this.#start = now;
    }
    this.#line.update(() => {
      const left = ((now - this.#start) / 1000 / done) * (total - done);
      const [count, all] = [done, total].map((number) => number.toLocaleString('en-US'));
      return `${what} ${count}/${all}${done > 0 && now > this.#start ? `  ${clockTime(left)} left` : ''}`;
    });
  }

  finish(): void {
    this.#line.clear();
  }
}
