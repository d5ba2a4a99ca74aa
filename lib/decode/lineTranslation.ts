/** Lines of a stream in windows that are translated together, in constant memory. */
import type { TextLine } from '../data/reading/lineReader.js';
import { checkString } from '../runtime/arguments.js';
import type { PreparedText, RefusedText } from './prepareTexts.js';
import { ReadAhead } from './readAhead.js';
import type { LineNumbers, LineReport, TooLongAction } from './translation.js';

/** A line and its output. */
export interface TranslatedLine<T> extends TextLine {
  readonly output: T;
  /** What was done because the line was too long; null: it was not. */
  readonly action: 'skip' | 'split' | null;
}

/** The steps of translating lines. */
export interface LineSteps<T> {
  /** @param cuts whether to cut what is too long, instead of refusing it */
  prepare(texts: readonly string[], cuts: boolean): Promise<(PreparedText | RefusedText)[]>;
  translate(texts: readonly PreparedText[], lines: readonly TextLine[]): Promise<T[]>;
  /** The output of a line that is skipped. */
  readonly skipped: T;
  tooLong(line: TextLine, refused: RefusedText): Error;
}

/** Settings of {@link translateInWindows}. */
export interface WindowSettings {
  readonly onTooLong: TooLongAction;
  /** Lines of the first window; the following ones double until they have `window`. */
  readonly firstWindow: number;
  readonly window: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Yields the lines of each window with their outputs, in the order of the source. The next window is
 * read meanwhile; no more is kept in memory.
 *
 * @throws the errors of the source and of the steps, after the lines before
 */
export async function* translateInWindows<T>(
  source: AsyncIterable<readonly TextLine[]>,
  steps: LineSteps<T>,
  { onTooLong, firstWindow, window, signal }: WindowSettings,
): AsyncGenerator<TranslatedLine<T>[], void, undefined> {
  const lines = new ReadAhead(source, window);
  try {
    for (let size = Math.min(firstWindow, window); ; size = Math.min(2 * size, window)) {
      const taken = await lines.take(size, signal);
      if (taken.length === 0) return;
      const { translated, fault } = await translateWindow(taken, steps, onTooLong);
      if (translated.length > 0) yield translated;
      if (fault !== null) throw fault;
    }
  } finally {
    await lines.close();
  }
}

/** The lines before the first that cannot be translated, and its error. */
async function translateWindow<T>(
  lines: readonly TextLine[],
  steps: LineSteps<T>,
  onTooLong: TooLongAction,
): Promise<{ translated: TranslatedLine<T>[]; fault: Error | null }> {
  const texts = lines.map(({ text }) => text ?? '');
  const prepared = await steps.prepare(texts, onTooLong === 'split');
  const works: { line: TextLine; text: PreparedText | null }[] = [];
  let fault: Error | null = null;
  for (const [index, line] of lines.entries()) {
    // A line of which the reader has kept nothing.
    const found =
      line.text === null ? { tokens: null } : (prepared[index] as PreparedText | RefusedText);
    if ('tokens' in found && onTooLong === 'error') {
      fault = steps.tooLong(line, found);
      break;
    }
    works.push({ line, text: 'tokens' in found ? null : found });
  }
  const translatable = works.flatMap(({ line, text }) => (text === null ? [] : [{ line, text }]));
  const outputs = await steps.translate(
    translatable.map(({ text }) => text),
    translatable.map(({ line }) => line),
  );
  let next = 0;
  const translated = works.map(({ line, text }): TranslatedLine<T> => {
    if (text === null) return { ...line, output: steps.skipped, action: 'skip' };
    return { ...line, output: outputs[next++] as T, action: text.isCut ? 'split' : null };
  });
  return { translated, fault };
}

const numbersKept = 10;

/** Counts the lines that have been translated. */
export class LineTally {
  #lines = 0;
  readonly #numbers = {
    skip: { count: 0, first: [] as number[] },
    split: { count: 0, first: [] as number[] },
  };

  add(lines: readonly TranslatedLine<unknown>[]): void {
    this.#lines += lines.length;
    for (const { number, action } of lines) {
      if (action === null) continue;
      const numbers = this.#numbers[action];
      numbers.count++;
      if (numbers.first.length < numbersKept) numbers.first.push(number);
    }
  }

  report(): LineReport {
    const copyOf = ({ count, first }: LineNumbers): LineNumbers => ({ count, first: [...first] });
    const { skip, split } = this.#numbers;
    return { lines: this.#lines, skipped: copyOf(skip), split: copyOf(split) };
  }
}

/**
 * The texts with their numbers.
 * @throws TypeError naming the line that is not a string
 */
export async function* numberedLines(
  owner: string,
  texts: Iterable<string> | AsyncIterable<string>,
): AsyncGenerator<readonly TextLine[], void, undefined> {
  let number = 0;
  for await (const text of texts) {
    number++;
    yield [{ number, text: checkString(owner, `line ${number}`, text) }];
  }
}
