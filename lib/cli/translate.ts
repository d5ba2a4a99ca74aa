/** `torchformer translate` */
import type { Command } from 'commander';
import { StringDecoder } from 'node:string_decoder';
import { TextTooLongError, Translator, type TranslateOptions } from '../decode/translator.js';
import { checkDevice, type DeviceChoice } from '../tensor/device.js';
import { setNumThreads } from '../tensor/threads.js';
import { deviceName, integer, nonEmpty } from './flagValues.js';
import { withInterrupts } from './signals.js';

interface TranslateFlags {
  model: string;
  batchSize: number;
  maxLength?: number;
  device: DeviceChoice;
  threads?: number;
}

export function registerTranslate(program: Command): void {
  program
    .command('translate')
    .description(
      'Translate the texts given, or the lines of standard input: one line of output for each.',
    )
    .argument('[texts...]', 'texts to translate; none: lines of standard input')
    .requiredOption(
      '--model <folder>',
      'model folder, or the folder of a run (its best model)',
      nonEmpty,
    )
    .option('--batch-size <texts>', 'texts translated together', integer(1), 32)
    .option(
      '--max-length <tokens>',
      "most tokens of an output (default: the model's longest)",
      integer(1),
    )
    .option(
      '--device <name>',
      'cpu, cuda, cuda:<number>, or auto: a GPU if there is one',
      deviceName,
      'cpu',
    )
    .option(
      '--threads <count>',
      "threads for one operation (default: libtorch's choice)",
      integer(1, 1024),
    )
    .action(async (texts: string[], flags: TranslateFlags) => {
      await withInterrupts('stopping; once more ends at once', (signal) =>
        translate(texts, flags, signal),
      );
    });
}

async function translate(
  texts: readonly string[],
  flags: TranslateFlags,
  signal: AbortSignal,
): Promise<void> {
  if (flags.threads !== undefined) setNumThreads(flags.threads);
  const device = checkDevice('translate', '--device', flags.device);
  const translator = await Translator.load(flags.model, { device });
  const { batchSize, maxLength } = flags;
  const options = { batchSize, maxLength, signal };
  try {
    if (texts.length > 0) {
      await writeLines(await translator.translate(texts, options));
    } else {
      await translateInput(translator, options);
    }
  } catch (error) {
    // Whoever reads the output has enough, as `head` does: no fault.
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error;
  } finally {
    translator.dispose();
  }
}

/** Translates the lines that have come as soon as they have come. */
async function translateInput(
  translator: Translator,
  options: TranslateOptions & { signal: AbortSignal },
): Promise<void> {
  let lineNumber = 0;
  const answer = async (lines: readonly string[]) => {
    if (lines.length === 0) return;
    try {
      await writeLines(await translator.translate(lines, options));
    } catch (error) {
      if (!(error instanceof TextTooLongError)) throw error;
      // The lines before it are as good as ever.
      await writeLines(await translator.translate(lines.slice(0, error.index), options));
      throw new RangeError(
        `line ${lineNumber + error.index + 1} of the input has ${error.tokens} tokens ` +
          `(with bos and eos), the model takes ${error.limit}; split it`,
        { cause: error },
      );
    }
    lineNumber += lines.length;
  };

  const input = process.stdin;
  const stop = () => input.destroy();
  options.signal.addEventListener('abort', stop, { once: true });
  try {
    const decoder = new StringDecoder('utf8');
    let open = '';
    for await (const chunk of input) {
      const lines = (open + decoder.write(chunk as Buffer)).split('\n');
      open = lines.pop() as string;
      await answer(lines.map(withoutReturn));
    }
    open += decoder.end();
    if (open !== '') await answer([withoutReturn(open)]);
  } catch (error) {
    options.signal.throwIfAborted();
    throw error;
  } finally {
    options.signal.removeEventListener('abort', stop);
  }
  options.signal.throwIfAborted();
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}

/** One line each, whatever the model wrote. */
async function writeLines(texts: readonly string[]): Promise<void> {
  const text = texts.map((line) => `${line.replace(/[\r\n]+/g, ' ')}\n`).join('');
  await new Promise<void>((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });
}
