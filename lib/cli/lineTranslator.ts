/** Translates lines as they arrive, and writes each as soon as it and all before it are done. */
import type { TextLine } from '../data/reading/lineReader.js';
import { isBlank, maxTextLength } from '../data/text.js';
import { sourceLimit } from '../decode/positionLimit.js';
import { splitText } from '../decode/splitText.js';
import type { Translator } from '../decode/translator.js';
import { counted } from '../runtime/counted.js';
import { TorchError } from '../runtime/errors.js';

/** What to do with a text that has more tokens than the model accepts. */
export type TooLongAction = 'error' | 'skip' | 'split';

export interface LineTranslatorOptions {
  /** Texts translated together. */
  readonly batchSize: number;
  readonly maxLength: number | undefined;
  readonly onTooLong: TooLongAction;
  /** How messages name a text: `'line'`, or `'text'` for an argument. */
  readonly place: 'line' | 'text';
  readonly signal: AbortSignal;
}

/** A line, split into parts that the model accepts; without parts, its output is empty. */
interface Job {
  readonly number: number;
  readonly parts: readonly string[];
  readonly outputs: string[];
  /** Number of parts that are not yet translated. */
  left: number;
}

/**
 * Texts of similar length are translated together, which reduces padding, but only within this many
 * batches, so that the first line of the output does not wait for all of the input.
 */
const mostBatches = 8;

export class LineTranslator {
  readonly #translator: Translator;
  readonly #options: LineTranslatorOptions;
  readonly #write: (lines: readonly string[]) => Promise<void>;
  readonly #limit: number;
  readonly #skipped: number[] = [];
  readonly #split: number[] = [];
  #lines = 0;
  #batches = 1;

  constructor(
    translator: Translator,
    options: LineTranslatorOptions,
    write: (lines: readonly string[]) => Promise<void>,
  ) {
    this.#translator = translator;
    this.#options = options;
    this.#write = write;
    this.#limit = sourceLimit(translator.model);
  }

  /**
   * @throws RangeError for a line that is too long, after the lines before it have been written
   * @throws the signal's reason if it has aborted
   */
  async take(lines: readonly TextLine[]): Promise<void> {
    let start = 0;
    while (start < lines.length) {
      const window = lines.slice(start, start + this.#batches * this.#options.batchSize);
      start += window.length;
      this.#batches = Math.min(2 * this.#batches, mostBatches);
      const { jobs, fault } = await this.#prepare(window);
      await this.#translate(jobs);
      this.#lines += jobs.length;
      if (fault !== null) throw fault;
    }
  }

  /** Messages about the lines that were too long. */
  summary(): string[] {
    const { place } = this.#options;
    const say = (numbers: readonly number[], what: string) =>
      numbers.length === 0
        ? []
        : [
            `${what} ${numbers.length} of ${counted(this.#lines, place)} that are too long for the ` +
              `model: ${place} ${list(numbers)}`,
          ];
    return [...say(this.#skipped, 'skipped'), ...say(this.#split, 'split')];
  }

  /** The jobs of the lines before the first one that cannot be translated, and its error. */
  async #prepare(lines: readonly TextLine[]): Promise<{ jobs: Job[]; fault: Error | null }> {
    const { onTooLong } = this.#options;
    const { tokenizer } = this.#translator;
    const counts = await this.#countTokens(lines);
    const jobs: Job[] = [];
    for (const [index, { number, text }] of lines.entries()) {
      const count = counts[index] as number;
      let parts = text === null || isBlank(text) ? [] : [text];
      if (text === null || count > this.#limit) {
        if (onTooLong === 'error') return { jobs, fault: this.#tooLong(number, text, count) };
        if (onTooLong === 'split' && text !== null) {
          // Each part is framed with bos and eos.
          parts = await splitText(text, tokenizer, this.#limit - 2);
          this.#split.push(number);
        } else {
          parts = [];
          this.#skipped.push(number);
        }
      }
      jobs.push({ number, parts, outputs: parts.map(() => ''), left: parts.length });
    }
    return { jobs, fault: null };
  }

  /** The number of tokens of each line, including bos and eos. */
  async #countTokens(lines: readonly TextLine[]): Promise<number[]> {
    const { tokenizer, specialIds } = this.#translator;
    const special = new Set<number>(Object.values(specialIds));
    const { signal } = this.#options;
    const encoded = await tokenizer.encodeBatch(
      lines.map(({ text }) => text ?? ''),
      { signal },
    );
    return encoded.map((ids) => ids.filter((id) => !special.has(id)).length + 2);
  }

  /** Replaces the translator's index into the batch with the number of the line. */
  #withLine(error: unknown, batch: readonly { readonly job: Job }[]): unknown {
    if (!(error instanceof TorchError)) return error;
    const message = error.message.replace(
      /^Translator\.translate: texts\[(\d+)\]/,
      (all: string, index: string) => {
        const piece = batch[Number(index)];
        return piece === undefined ? all : this.#nameOf(piece.job.number);
      },
    );
    return new TorchError(error.code, message, { cause: error });
  }

  #nameOf(number: number): string {
    return this.#options.place === 'line' ? `line ${number} of the input` : `text ${number}`;
  }

  #tooLong(number: number, text: string | null, tokens: number): Error {
    const size =
      text === null
        ? `more than ${maxTextLength.toLocaleString('en-US')} characters`
        : `${tokens} tokens (with bos and eos), but the model accepts ${this.#limit}`;
    return new RangeError(
      `${this.#nameOf(number)} has ${size}; split it, or use --on-too-long ` +
        (text === null ? 'skip' : 'skip or --on-too-long split'),
    );
  }

  async #translate(jobs: readonly Job[]): Promise<void> {
    const { batchSize, maxLength, signal } = this.#options;
    const pieces = jobs.flatMap((job) => job.parts.map((text, part) => ({ job, part, text })));
    pieces.sort((a, b) => a.text.length - b.text.length);
    let written = 0;
    const writeDone = async () => {
      const done: string[] = [];
      for (const { outputs, left } of jobs.slice(written)) {
        if (left > 0) break;
        done.push(outputs.filter((output) => output !== '').join(' '));
      }
      written += done.length;
      if (done.length > 0) await this.#write(done);
    };
    for (let start = 0; start < pieces.length; start += batchSize) {
      const batch = pieces.slice(start, start + batchSize);
      const texts = batch.map(({ text }) => text);
      const outputs = await this.#translator
        .translate(texts, { batchSize, maxLength, signal })
        .catch((error: unknown) => {
          throw this.#withLine(error, batch);
        });
      batch.forEach(({ job, part }, index) => {
        job.outputs[part] = outputs[index] as string;
        job.left--;
      });
      await writeDone();
    }
    await writeDone();
  }
}

function list(numbers: readonly number[]): string {
  const shown = numbers.slice(0, 5).join(', ');
  return numbers.length > 5 ? `${shown}, …` : shown;
}
