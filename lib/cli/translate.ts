/** `torchformer translate` */
import { Option, type Command } from 'commander';
import { fstatSync } from 'node:fs';
import { readLines, type TextLine } from '../data/reading/lineReader.js';
import { Translator } from '../decode/translator.js';
import { TorchError } from '../runtime/errors.js';
import { integer, path } from './flagValues.js';
import { LineTranslator, type TooLongAction } from './lineTranslator.js';
import { addRuntimeFlags, applyRuntimeFlags, type RuntimeFlags } from './runtimeFlags.js';
import { withInterrupts } from './signals.js';

interface TranslateFlags extends RuntimeFlags {
  model: string;
  batchSize: number;
  maxLength?: number;
  onTooLong: TooLongAction;
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
    .option('--batch-size <texts>', 'texts translated together', integer(1), 32)
    .option(
      '--max-length <tokens>',
      "maximum tokens of an output (default: the model's maximum)",
      integer(1),
    )
    .addOption(
      new Option(
        '--on-too-long <action>',
        'what to do with a text that is too long for the model: error ends the command, skip outputs ' +
          'an empty line, split translates the text in parts',
      )
        .choices(['error', 'skip', 'split'])
        .default('error'),
    );
  addRuntimeFlags(command)
    .addHelpText(
      'after',
      '\nPut a text that begins with a hyphen after --:\n' +
        '  torchformer translate --model <folder> -- "- one"',
    )
    .exitOverride((error) => {
      if (error.code === 'commander.unknownOption') {
        process.stderr.write('Put a text that begins with a hyphen after --, as in: -- "- one"\n');
      }
      throw error;
    })
    .action(async (texts: string[], flags: TranslateFlags) => {
      await withInterrupts('stopping; a second signal ends immediately', (signal) =>
        translate(texts, flags, signal),
      );
    });
}

async function translate(
  texts: readonly string[],
  flags: TranslateFlags,
  signal: AbortSignal,
): Promise<void> {
  const device = applyRuntimeFlags('translate', flags);
  if (texts.length === 0) refuseFolderAsInput();
  const translator = await Translator.load(flags.model, { device });
  const { batchSize, maxLength, onTooLong } = flags;
  const place = texts.length > 0 ? 'text' : 'line';
  const lines = new LineTranslator(
    translator,
    { batchSize, maxLength, onTooLong, place, signal },
    writeLines,
  );
  try {
    if (texts.length > 0) {
      await lines.take(texts.map((text, index) => ({ number: index + 1, text })));
    } else {
      for await (const group of inputLines(signal)) await lines.take(group);
    }
    for (const line of lines.summary()) process.stderr.write(`${line}\n`);
  } catch (error) {
    // The reader of the output has closed it, as `head` does, which is not an error.
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
  } finally {
    translator.dispose();
  }
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

/** Writes each text on one line, even if it contains line ends. */
async function writeLines(texts: readonly string[]): Promise<void> {
  const text = texts.map((line) => `${line.replace(/[\r\n]+/g, ' ')}\n`).join('');
  await new Promise<void>((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });
}
