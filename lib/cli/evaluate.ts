/** `torchformer evaluate` */
import { Option, type Command } from 'commander';
import { stat } from 'node:fs/promises';
import { batches } from '../data/batching/batches.js';
import { TranslationDataset } from '../data/dataset.js';
import type { SentencePair } from '../data/reading/pairReader.js';
import { describeReport } from '../data/report.js';
import { checkOutputFile } from '../decode/outputFile.js';
import { sourceLimit, targetLimit } from '../decode/positionLimit.js';
import { TextTooLongError } from '../decode/textTooLong.js';
import { Translator } from '../decode/translator.js';
import { writeFileAtomically } from '../io/atomicFile.js';
import { pairedBootstrap } from '../metrics/bootstrap/pairedBootstrap.js';
import { scoreTranslations, type MetricOptions } from '../metrics/scoreTranslations.js';
import { bleuTokenizers, type BleuTokenizer } from '../metrics/tokenizers/bleuTokenizer.js';
import { counted } from '../runtime/counted.js';
import type { Device } from '../tensor/device.js';
import { evaluate, type Evaluation } from '../train/evaluate.js';
import { translationScores } from '../train/translationScores.js';
import { addColumnFlags, addFormatFlags, readPairsOf, type DataFlags } from './dataFlags.js';
import { describeEvaluation, recordOf, type Evaluated } from './evaluationReport.js';
import { integer, path } from './flagValues.js';
import { addRuntimeFlags, applyRuntimeFlags, type RuntimeFlags } from './runtimeFlags.js';
import { addSearchFlags, addSpeedFlags, addTooLongFlag } from './searchFlags.js';
import type { SearchFlags, SpeedFlags } from './searchFlags.js';
import { withInterrupts } from './signals.js';
import { tooLongFault } from './tooLongFault.js';
import { oneLine } from './translationFormat.js';
import { countBlank, readTranslations, translationLines } from './translationLines.js';
import { WorkProgress } from './workProgress.js';

interface EvaluateFlags extends DataFlags, RuntimeFlags, SearchFlags, SpeedFlags {
  data: string;
  model?: string;
  score?: string;
  against?: string;
  output?: string;
  json?: true;
  tokenize?: BleuTokenizer;
  chrfWords: number;
  bootstrap: number;
  seed: number;
  onTooLong: 'error' | 'skip';
}

/** Target tokens of a batch whose loss is computed. */
const batchTokens = 2000;

export function registerEvaluate(program: Command): void {
  const command = program
    .command('evaluate')
    .description(
      'Measure a model, or translations, on a CSV or TSV file of sentence pairs: loss, perplexity and ' +
        'accuracy of the model; BLEU, chrF and TER of the translations, as sacrebleu computes them.',
    )
    .option('--model <folder>', 'model folder, or the folder of a run (its best model)', path)
    .option(
      '--score <file>',
      'translations to score, a line for each row of the data, instead of those of the model',
      path,
    )
    .optionsGroup('Data:')
    .requiredOption('--data <file>', 'sentence pairs: CSV or TSV, plain or gzip', path);
  addFormatFlags(addColumnFlags(command))
    .optionsGroup('Scores:')
    .addOption(
      new Option(
        '--tokenize <name>',
        'words of BLEU (default: zh if the targets are mostly Chinese, else 13a)',
      ).choices([...bleuTokenizers]),
    )
    .option('--chrf-words <count>', 'longest word sequences of chrF; 2: chrF++', integer(0, 100), 0)
    .option(
      '--against <path>',
      'another model folder, or a file of translations: tells whether the difference may be chance',
      path,
    )
    .option('--bootstrap <count>', 'of --against: test sets that are drawn', integer(1), 1000)
    .option('--seed <number>', 'of --against: which test sets are drawn', integer(0), 12345)
    .option('--output <file>', 'file for the translations, a line for each row of the data', path)
    .option('--json', 'print one JSON object');
  addSearchFlags(command.optionsGroup('Search:'));
  addTooLongFlag(command, {
    error: 'ends the command',
    skip: 'counts its translation as empty',
  });
  addSpeedFlags(command.optionsGroup('Speed:'));
  addRuntimeFlags(command)
    .addHelpText(
      'after',
      '\nRows without a source or a target are not scored. The texts are compared as they are: do not\n' +
        'tokenize them. Scores of translations alone: --score <file> without --model.',
    )
    .action(async (flags: EvaluateFlags, self: Command) => {
      const fault = conflictOf(flags, self);
      if (fault !== null) self.error(`error: ${fault}`);
      await withInterrupts('stopping; a second signal ends immediately', (signal) =>
        run(flags, signal),
      );
    });
}

/** Why the flags cannot be used together; null: they can. */
function conflictOf({ model, score, output, against }: EvaluateFlags, command: Command) {
  const isGiven = (name: string) => command.getOptionValueSource(name) === 'cli';
  if (model === undefined && score === undefined) {
    return 'there is nothing to evaluate: use --model <folder>, --score <file>, or both';
  }
  if (output !== undefined && score !== undefined) {
    return '--output is for the translations of --model, and --score has them already';
  }
  const searching = ['beam', 'lengthPenalty', 'maxLength', 'onTooLong', 'batchSize', 'precision'];
  const search = searching.find(isGiven);
  if (score !== undefined && against === undefined && search !== undefined) {
    const flag = search.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    return `--${flag} is for translating, but --score has the translations already`;
  }
  if (against === undefined) {
    const useless = ['bootstrap', 'seed'].find(isGiven);
    if (useless !== undefined) return `--${useless} is for --against`;
  }
  return null;
}

/** What all parts of the work need. */
interface Work {
  readonly pairs: readonly SentencePair[];
  readonly flags: EvaluateFlags;
  readonly device: Device;
  readonly signal: AbortSignal;
  readonly metrics: MetricOptions;
}

async function run(flags: EvaluateFlags, signal: AbortSignal): Promise<void> {
  const device = applyRuntimeFlags('evaluate', flags);
  const { data, model = null, score = null, against = null, output } = flags;
  if (output !== undefined) await checkOutputFile('evaluate', data, output);
  const { pairs, report } = await readPairsOf(data, flags, signal);
  if (pairs.length < report.rows) say(describeReport(report));
  const work: Work = { pairs, flags, device, signal, metrics: metricsOf(flags) };

  // Files are read before anything is computed.
  const given = score === null ? null : await readTranslations(score, pairs, report);
  const others =
    against === null || (await isFolder(against))
      ? null
      : await readTranslations(against, pairs, report);
  const own = model === null ? null : await measure(model, given === null, work);
  const translations = given ?? own?.translated?.translations ?? [];
  if (output !== undefined) await write(output, translationLines(translations, pairs, report));
  const references = pairs.map(({ tgt }) => tgt);
  const { metrics } = work;
  const scores = await scoreTranslations(translations, references, { ...metrics, signal });
  const evaluated: Evaluated = {
    data,
    model,
    score,
    sentences: pairs.length,
    empty: countBlank(translations),
    loss: own?.loss ?? null,
    scores,
    search: own?.translated?.search ?? null,
    against: null,
  };
  if (against !== null) {
    const other = others ?? (await otherTranslations(against, work));
    const { bootstrap: samples, seed } = flags;
    const options = { ...metrics, samples, seed, signal };
    const paired = await pairedBootstrap(other, translations, references, options);
    evaluated.against = { name: against, samples, seed, ...paired };
  }
  process.stdout.write(
    flags.json === true
      ? `${JSON.stringify(recordOf(evaluated), null, 2)}\n`
      : describeEvaluation(evaluated),
  );
}

function metricsOf({ tokenize, chrfWords }: EvaluateFlags): MetricOptions {
  return { bleu: { tokenize }, chrf: { wordOrder: chrfWords } };
}

async function isFolder(name: string): Promise<boolean> {
  return (await stat(name).catch(() => null))?.isDirectory() === true;
}

async function write(output: string, lines: readonly string[]): Promise<void> {
  const text = lines.map((line) => `${oneLine(line)}\n`).join('');
  await writeFileAtomically(output, async (sink) => sink(Buffer.from(text)));
}

/** The loss of a model and, unless translations are given, what it translates. */
async function measure(
  folder: string,
  translates: boolean,
  work: Work,
): Promise<{ loss: Evaluation; translated: Translated | null }> {
  const { device, flags } = work;
  const translator = await Translator.load(folder, { device, precision: flags.precision });
  try {
    const loss = await lossOf(translator, work);
    return { loss, translated: translates ? await translate(translator, work) : null };
  } finally {
    translator.dispose();
  }
}

/** What the model of --against translates. */
async function otherTranslations(folder: string, work: Work): Promise<readonly string[]> {
  const { device, flags } = work;
  const translator = await Translator.load(folder, { device, precision: flags.precision });
  try {
    return (await translate(translator, work)).translations;
  } finally {
    translator.dispose();
  }
}

/** Of each target token, given the ones before. */
async function lossOf(translator: Translator, { pairs, signal }: Work): Promise<Evaluation> {
  const { model, tokenizer, specialIds } = translator;
  const limit = Math.min(sourceLimit(model), targetLimit(model) + 1, Number.MAX_SAFE_INTEGER);
  const options = { tokenizer, specialIds, maxLength: limit, signal };
  const dataset = await TranslationDataset.fromPairs(pairs, options);
  if (dataset.length < pairs.length) say(`loss: ${describeReport(dataset.report)}`);
  const source = batches(dataset, { tokens: batchTokens, bucket: true });
  const progress = new WorkProgress();
  const evaluation = await evaluate(model, source, {
    pad: specialIds.pad,
    accuracy: true,
    signal,
    onBatch: ({ index }, { expectedBatches }) =>
      progress.update('loss of batches', index, expectedBatches ?? index),
  }).finally(() => progress.finish());
  signal.throwIfAborted();
  return evaluation;
}

/** Translations with how they were made. */
interface Translated {
  readonly translations: readonly string[];
  readonly search: NonNullable<Evaluated['search']>;
}

async function translate(translator: Translator, work: Work): Promise<Translated> {
  const { pairs, flags, signal, metrics } = work;
  const { beam, lengthPenalty, maxLength, batchSize, onTooLong, precision } = flags;
  const progress = new WorkProgress();
  const { translations, tooLong, seconds } = await translationScores(
    translator,
    pairs.map(({ src }) => src),
    pairs.map(({ tgt }) => tgt),
    {
      ...metrics,
      ...{ beam, lengthPenalty, maxLength, batchSize, onTooLong, signal },
      onProgress: (done, total) => progress.update('translating', done, total),
    },
  )
    .catch((error: unknown) => {
      if (!(error instanceof TextTooLongError)) throw error;
      const { row = 0 } = pairs[error.index] ?? {};
      throw tooLongFault(`row ${row} of ${flags.data}`, error, ['skip']);
    })
    .finally(() => progress.finish());
  if (tooLong.length > 0) {
    const rows = tooLong.slice(0, 5).map((index) => pairs[index]?.row);
    say(
      `too long for the model, with empty translations: ${counted(tooLong.length, 'source')} ` +
        `(row ${rows.join(', ')}${tooLong.length > 5 ? ', …' : ''})`,
    );
  }
  const tokens = (await translator.tokenizer.encodeBatch(translations, { signal })).flat().length;
  return { translations, search: { beam, lengthPenalty, precision, seconds, tokens } };
}

/** Notes go to standard error; standard output has only the result. */
function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
