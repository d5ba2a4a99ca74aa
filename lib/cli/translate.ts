/** `torchformer translate` */
import type { Command } from 'commander';
import { fstatSync } from 'node:fs';
import { readLines, type TextLine } from '../data/reading/lineReader.js';
import { LineTally, type TranslatedLine } from '../decode/lineTranslation.js';
import { checkOutputFile } from '../decode/outputFile.js';
import { TextTooLongError } from '../decode/textTooLong.js';
import type { LineNumbers, LineOptions, TooLongAction } from '../decode/translation.js';
import { Translator } from '../decode/translator.js';
import { writeFileAtomically } from '../io/atomicFile.js';
import { counted } from '../runtime/counted.js';
import { TorchError } from '../runtime/errors.js';
import { integer, nonEmpty, path, positiveNumber } from './flagValues.js';
import { addRuntimeFlags, applyRuntimeFlags, type RuntimeFlags } from './runtimeFlags.js';
import { addSearchFlags, addSpeedFlags, addTooLongFlag } from './searchFlags.js';
import type { SearchFlags, SpeedFlags } from './searchFlags.js';
import { withInterrupts } from './signals.js';
import { tooLongFault } from './tooLongFault.js';
import { formatted, needsDetails, oneLine, type FormatFlags } from './translationFormat.js';
import { sizeOfText, TranslationProgress } from './translationProgress.js';

interface TranslateFlags extends RuntimeFlags, FormatFlags, SearchFlags, SpeedFlags {
  model: string;
  input?: string;
  output?: string;
  onTooLong: TooLongAction;
  split?: boolean;
  locale?: string;
  sample?: boolean;
  temperature?: number;
  topK?: number;
  topP?: number;
  seed?: number;
}

export function registerTranslate(program: Command): void {
  const command = program
    .command('translate')
    .description(
      'Translate the given texts, or the lines of standard input: one line of output for each.',
    )
    .argument('[texts...]', 'texts to translate; none: lines of standard input')
    .requiredOption(
      '--model <folder>',
      'model folder, or the folder of a run (its best model)',
      path,
    )
    .option('--input <file>', 'file with lines to translate, instead of standard input', path)
    .option(
      '--output <file>',
      'file to write, once all is translated, instead of standard output',
      path,
    )
    .option('--split', 'translate the sentences of a line one by one')
    .option(
      '--locale <tag>',
      "language of the texts for --split, such as de (default: the system's)",
      nonEmpty,
    );
  addTooLongFlag(command, {
    error: 'ends the command',
    skip: 'outputs an empty line',
    split: 'translates the text in parts',
  });
  addSearchFlags(command.optionsGroup('Search:'))
    .option('--sample', 'choose tokens at random by their probabilities')
    .option(
      '--temperature <number>',
      'of --sample: divides the logits (default: 1)',
      positiveNumber,
    )
    .option('--top-k <count>', 'of --sample: among so many tokens (default: all)', integer(1))
    .option(
      '--top-p <probability>',
      'of --sample: among the tokens that add up to it (default: 1)',
      positiveNumber,
    )
    .option('--seed <number>', 'of --sample: makes outputs repeatable (default: 0)', integer(0))
    .optionsGroup('Format:')
    .option('--n-best <count>', 'outputs of a text, each on its line', integer(1), 1)
    .option('--scores', 'write the score of each output')
    .option('--alignments', 'write which token of the text each token attends to most')
    .option('--json', 'write an object in JSON for each text, on one line');
  addSpeedFlags(command.optionsGroup('Speed:'));
  addRuntimeFlags(command)
    .addHelpText(
      'after',
      '\nWith --n-best, --scores or --alignments, the fields of a line are separated by " ||| ":\n' +
        '  the number of the text from 0 (--n-best only) ||| output ||| score ||| alignment\n' +
        'Put a text that begins with a hyphen after --:\n' +
        '  torchformer translate --model <folder> -- "- one"',
    )
    .exitOverride((error) => {
      if (error.code === 'commander.unknownOption') {
        process.stderr.write('Put a text that begins with a hyphen after --, as in: -- "- one"\n');
      }
      throw error;
    })
    .action(async (texts: string[], flags: TranslateFlags) => {
      const fault = conflictOf(texts, flags);
      if (fault !== null) command.error(`error: ${fault}`);
      await withInterrupts('stopping; a second signal ends immediately', (signal) =>
        translate(texts, flags, signal),
      );
    });
}

/** Why the flags cannot be used together; null: they can. */
function conflictOf(texts: readonly string[], flags: TranslateFlags): string | null {
  if (texts.length > 0 && flags.input !== undefined) return '--input cannot be used with texts';
  if (flags.locale !== undefined && flags.split !== true) return '--locale is for --split';
  const { temperature, topK, topP, seed } = flags;
  const names = Object.entries({ temperature, 'top-k': topK, 'top-p': topP, seed });
  const given = names.find(([, value]) => value !== undefined);
  return given !== undefined && flags.sample !== true ? `--${given[0]} is for --sample` : null;
}

async function translate(
  texts: readonly string[],
  flags: TranslateFlags,
  signal: AbortSignal,
): Promise<void> {
  const device = applyRuntimeFlags('translate', flags);
  const { input, output, precision } = flags;
  if (texts.length === 0 && input === undefined) refuseFolderAsInput();
  if (output !== undefined) await checkOutputFile('translate', input ?? [], output);
  const translator = await Translator.load(flags.model, { device, precision });
  try {
    if (output === undefined) {
      await writeAll(translator, texts, flags, signal, writeToOutput);
    } else {
      await writeFileAtomically(output, async (sink) =>
        writeAll(translator, texts, flags, signal, (text) => sink(Buffer.from(text))),
      );
    }
  } catch (error) {
    signal.throwIfAborted();
    // The reader of the output has closed it, as `head` does, which is not an error.
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
  } finally {
    translator.dispose();
  }
}

async function writeAll(
  translator: Translator,
  texts: readonly string[],
  flags: TranslateFlags,
  signal: AbortSignal,
  write: (text: string) => Promise<void>,
): Promise<void> {
  const { input } = flags;
  const place = texts.length > 0 ? 'text' : 'line';
  const nameOf = (number: number) =>
    place === 'text' ? `text ${number}` : `line ${number} of ${input ?? 'the input'}`;
  const tally = new LineTally();
  const progress = progressOf(texts, flags);
  try {
    for await (const { lines, text } of groups(translator, texts, flags, signal, nameOf)) {
      await write(text);
      tally.add(lines);
      progress?.add(lines);
    }
  } catch (error) {
    if (!(error instanceof TextTooLongError)) throw error;
    throw tooLongFault(nameOf(error.index + 1), error, ['skip', 'split']);
  } finally {
    progress?.finish();
  }
  const { lines, skipped, split } = tally.report();
  const tell = (what: string, { count, first }: LineNumbers) => {
    if (count === 0) return;
    process.stderr.write(
      `${what} ${count} of ${counted(lines, place)} that are too long for the model: ` +
        `${place} ${first.slice(0, 5).join(', ')}${count > 5 ? ', …' : ''}\n`,
    );
  };
  tell('skipped', skipped);
  tell('split', split);
}

/** Groups of lines, and what is printed for each. */
async function* groups(
  translator: Translator,
  texts: readonly string[],
  flags: TranslateFlags,
  signal: AbortSignal,
  nameOf: (number: number) => string,
): AsyncGenerator<{ lines: readonly TranslatedLine<unknown>[]; text: string }> {
  const { beam, lengthPenalty, maxLength, batchSize, onTooLong, split, locale, nBest } = flags;
  const { sample, temperature, topK, topP, seed, alignments } = flags;
  const options: LineOptions = {
    beam,
    lengthPenalty,
    maxLength,
    batchSize,
    onTooLong,
    split: split === true ? { locale } : false,
    sampling: sample === true ? { temperature, topK, topP, seed } : false,
    signal,
  };
  const source = () => linesOf(texts, flags.input, signal);
  if (!needsDetails(flags)) {
    for await (const lines of translator.translateTextLines(source, options, nameOf)) {
      yield { lines, text: lines.map(({ output }) => `${oneLine(output)}\n`).join('') };
    }
    return;
  }
  const detailed = { ...options, nBest, attention: alignments ?? false };
  for await (const lines of translator.translateTextLinesDetailed(source, detailed, nameOf)) {
    yield { lines, text: lines.map((line) => formatted(line, flags)).join('') };
  }
}

/** Only for files, and only where it does not get between the outputs. */
function progressOf(texts: readonly string[], flags: TranslateFlags): TranslationProgress | null {
  const isShared = flags.output === undefined && process.stdout.isTTY;
  if (texts.length > 0 || isShared) return null;
  if (flags.input === undefined && process.stdin.isTTY) return null;
  return new TranslationProgress(sizeOfText(flags.input ?? 0));
}

function linesOf(
  texts: readonly string[],
  input: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<readonly TextLine[]> {
  if (texts.length > 0) return givenTexts(texts);
  return input === undefined ? inputLines(signal) : readLines(input, input);
}

// eslint-disable-next-line @typescript-eslint/require-await -- the same type as the lines of a file
async function* givenTexts(texts: readonly string[]): AsyncGenerator<readonly TextLine[]> {
  yield texts.map((text, index) => ({ number: index + 1, text }));
}

/** The lines of standard input, as soon as they arrive. */
async function* inputLines(signal: AbortSignal): AsyncGenerator<TextLine[]> {
  const input = process.stdin;
  const stop = () => input.destroy();
  signal.addEventListener('abort', stop, { once: true });
  try {
    yield* readLines(input as AsyncIterable<Uint8Array>, 'standard input');
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', stop);
  }
  signal.throwIfAborted();
}

/** Node.js treats a folder as an empty input. */
function refuseFolderAsInput(): void {
  let isFolder = false;
  try {
    isFolder = fstatSync(0).isDirectory();
  } catch {
    // Standard input is closed, so there are no lines.
  }
  if (isFolder) throw new TorchError('ERR_DATA', 'standard input is a folder, not a file');
}

async function writeToOutput(text: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });
}
