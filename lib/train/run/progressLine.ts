/** The stream that progress is written to: `process.stderr` or a similar object. */
export interface ProgressStream {
  /** Writes text, which contains line breaks and, on a terminal, control codes. */
  write(text: string): unknown;
  /** Whether a line can be overwritten. Default false. */
  readonly isTTY?: boolean;
  /** Width of the terminal in characters. Default 80. */
  readonly columns?: number;
}

const terminalInterval = 100;
const logInterval = 30_000;

/** On a terminal, one line that is rewritten; otherwise an occasional line. */
export class ProgressLine {
  readonly #stream: ProgressStream;
  readonly #now: () => number;
  #lastShown: number;
  #isOpen = false;

  /** @param now clock in milliseconds */
  constructor(stream: ProgressStream, now: () => number) {
    this.#stream = stream;
    this.#now = now;
    this.#lastShown = now();
  }

  /** Maximum number of columns of a line; 0 if the stream is not a terminal. */
  get width(): number {
    if (!this.#isTerminal) return 0;
    const { columns = 0 } = this.#stream;
    // A line that wraps could not be rewritten, and some terminals wrap a full one.
    return (columns > 0 ? columns : 80) - 1;
  }

  /**
   * Shows a line, unless the previous one was shown too recently.
   * @param isLast whether it is the last of its kind: a terminal always shows it
   */
  update(line: () => string, isLast = false): void {
    const now = this.#now();
    const interval = this.#isTerminal ? terminalInterval : logInterval;
    if (now - this.#lastShown < interval && !(isLast && this.#isTerminal)) return;
    this.#lastShown = now;
    if (this.#isTerminal) {
      this.#stream.write(`\r${line().slice(0, this.width)}\u001b[K`);
      this.#isOpen = true;
    } else {
      this.#stream.write(`${line()}\n`);
    }
  }

  /** Writes a permanent line. */
  message(text: string): void {
    this.clear();
    this.#stream.write(`${text}\n`);
  }

  /** Clears the line that is being rewritten. */
  clear(): void {
    if (this.#isOpen) this.#stream.write('\r\u001b[K');
    this.#isOpen = false;
  }

  get #isTerminal(): boolean {
    return this.#stream.isTTY === true;
  }
}

/** `1:02:03` or `2:03`. */
export function clockTime(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const parts = [Math.floor(whole / 60) % 60, whole % 60].map((part) =>
    String(part).padStart(2, '0'),
  );
  const hours = Math.floor(whole / 3600);
  return hours > 0 ? `${hours}:${parts.join(':')}` : parts.join(':').replace(/^0/, '');
}
