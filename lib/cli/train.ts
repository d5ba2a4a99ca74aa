/** `torchformer train` */
import { Option, type Command } from 'commander';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { batches } from '../data/batching/batches.js';
import { TranslationDataset } from '../data/dataset.js';
import { readPairs, type SentencePair } from '../data/reading/pairReader.js';
import { describeReport, type DataReport } from '../data/report.js';
import { describeSpecialIds, findSpecialIds } from '../data/tokenizers/specialIds.js';
import { maxTextLength } from '../data/text.js';
import { Tokenizer } from '../data/tokenizers/tokenizer.js';
import { defaultSpecialTokens, trainBpe } from '../data/tokenizers/trainTokenizer.js';
import { makeModel } from '../nn/model/makeModel.js';
import { saveModel, type SaveModelOptions } from '../io/checkpoint.js';
import type { Transformer } from '../nn/model/transformer.js';
import { counted } from '../runtime/counted.js';
import { TorchError } from '../runtime/errors.js';
import { noam } from '../optim/schedule.js';
import { ones } from '../tensor/create.js';
import { manualSeed } from '../tensor/random.js';
import { ProgressBar } from '../train/run/progress.js';
import { RunFolder } from '../train/run/runFolder.js';
import { Trainer } from '../train/trainer.js';
import { warmup } from '../train/warmup.js';
import {
  delimiter,
  integer,
  nonEmpty,
  path,
  positiveNumber,
  tokenOrId,
  trainingDType,
} from './flagValues.js';
import { addModelFlags, modelFlagsFault, modelOptionsOf, type ModelFlags } from './modelFlags.js';
import { addRuntimeFlags, applyRuntimeFlags, type RuntimeFlags } from './runtimeFlags.js';
import { withInterrupts } from './signals.js';
import { commandWording } from './wording.js';
import { WorkProgress } from './workProgress.js';

interface TrainFlags extends ModelFlags, RuntimeFlags {
  train: string;
  validate?: string;
  src: string;
  tgt: string;
  format: 'auto' | 'csv' | 'tsv';
  delimiter?: string;
  quotes: boolean;
  onMalformed: 'error' | 'skip';
  maxLength: number;
  tokenizer?: string;
  vocabSize: number;
  pad?: string | number;
  bos?: string | number;
  eos?: string | number;
  out: string;
  overwrite?: true;
  epochs: number;
  batchSize: number;
  batchTokens?: number;
  bucket?: true;
  accumulate: number;
  schedule: 'constant' | 'noam';
  lr?: number;
  warmup?: number;
  clip?: number;
  samples: number;
  seed: number;
  dtype: 'float32' | 'float64' | 'bfloat16' | 'float16';
}

const defaultRate = 5e-4;
const defaultWarmup = 400;
const paperWarmup = 4000;
/** Special tokens and bytes, which every trained vocabulary has. */
const smallestVocabulary = defaultSpecialTokens.length + 256;

export function registerTrain(program: Command): void {
  const command = program
    .command('train')
    .description('Train a translator on a CSV or TSV file of sentence pairs.')
    .optionsGroup('Data:')
    .requiredOption('--train <file>', 'pairs to train on: CSV or TSV, plain or gzip', path)
    .option(
      '--validate <file>',
      'pairs that select the best model; without them only the last one is saved',
      path,
    )
    .requiredOption('--src <column>', 'name of the column with the source sentences', nonEmpty)
    .requiredOption('--tgt <column>', 'name of the column with the target sentences', nonEmpty)
    .addOption(
      new Option(
        '--format <format>',
        'format of the files; auto: the one in which the first row has both columns',
      )
        .choices(['auto', 'csv', 'tsv'])
        .default('auto'),
    )
    .option(
      '--delimiter <character>',
      'character between cells, or tab (default: depends on the format)',
      delimiter,
    )
    .option('--no-quotes', 'treat quotes as ordinary characters (default: only in TSV)')
    .addOption(
      new Option(
        '--on-malformed <action>',
        'what to do with a row that has the wrong number of cells',
      )
        .choices(['error', 'skip'])
        .default('error'),
    )
    .option(
      '--max-length <tokens>',
      'maximum sentence length, including bos and eos; longer pairs are left out and counted',
      integer(3),
      200,
    )
    .optionsGroup('Tokenizer:')
    .option(
      '--tokenizer <file>',
      'a Hugging Face tokenizer.json; without it a byte-level BPE is trained on both columns',
      path,
    )
    .option('--vocab-size <tokens>', 'vocabulary size of the trained tokenizer', integer(1), 8000)
    .option(
      '--pad <token>',
      'token that pads batches, or its id (default: found by its name)',
      tokenOrId,
    )
    .option(
      '--bos <token>',
      'token that begins a sentence, or its id (default: found by its name)',
      tokenOrId,
    )
    .option(
      '--eos <token>',
      'token that ends a sentence, or its id (default: found by its name)',
      tokenOrId,
    );
  addModelFlags(command)
    .optionsGroup('Training:')
    .requiredOption('--out <folder>', 'folder for best/, last/, history.json and loss.svg', path)
    .option('--overwrite', 'replace the models of an earlier run in --out')
    .option('--epochs <count>', 'passes over the training pairs', integer(1), 10)
    .option('--batch-size <pairs>', 'pairs per batch', integer(1), 50)
    .addOption(
      new Option(
        '--batch-tokens <tokens>',
        'instead of --batch-size: as many pairs as have at most this many tokens on either side, ' +
          'not counting padding',
      )
        .argParser(integer(1))
        .conflicts('batchSize'),
    )
    .option('--bucket', 'batch pairs of similar length: less padding, faster')
    .option(
      '--accumulate <batches>',
      'batches whose gradients are accumulated for one step',
      integer(1),
      1,
    )
    .addOption(
      new Option(
        '--schedule <name>',
        'constant learning rate after the warmup, or the formula of the paper',
      )
        .choices(['constant', 'noam'])
        .default('constant'),
    )
    .option(
      '--lr <rate>',
      `learning rate; with --schedule noam the formula's factor (default: ${defaultRate}, noam: 1)`,
      positiveNumber,
    )
    .option(
      '--warmup <steps>',
      `steps in which the rate increases (default: ${defaultWarmup}, noam: ${paperWarmup})`,
      integer(0),
    )
    .option('--clip <norm>', 'maximum norm of the gradients (default: no clipping)', positiveNumber)
    .option('--samples <count>', 'validation sources to translate after each epoch', integer(0), 3)
    .option('--seed <number>', 'seed of weights, order and dropout', integer(0), 1)
    .option(
      '--dtype <type>',
      'float32, float64, or products in bf16 or fp16 with everything else in float32',
      trainingDType,
      'float32',
    );
  addRuntimeFlags(command)
    .addHelpText(
      'after',
      '\nCtrl-C stops after the current step and saves last/; so do SIGTERM, SIGHUP, SIGUSR1 and\n' +
        'SIGUSR2. A second signal ends immediately, and so does SIGQUIT.\n' +
        'Then: torchformer translate --model <out> "a sentence"',
    )
    .action(async (flags: TrainFlags, command: Command) => {
      const fault = modelFlagsFault(flags);
      if (fault !== null) command.error(fault);
      if (flags.schedule === 'noam' && flags.warmup === 0) {
        command.error('error: --schedule noam needs a --warmup of at least 1');
      }
      if (flags.tokenizer === undefined && flags.vocabSize < smallestVocabulary) {
        command.error(
          `error: --vocab-size must be at least ${smallestVocabulary} (special tokens and 256 ` +
            `bytes), got ${flags.vocabSize}`,
        );
      }
      if (flags.overwrite !== true) await refuseOldRun(flags.out, command);
      const trained = await withInterrupts(
        'stopping after this step; a second signal ends immediately',
        (signal) => train(flags, signal),
      );
      if (trained !== true) say('stopped before the first step: nothing was saved');
    });
}

/** @returns whether there is a model: false if it was stopped before the first step */
async function train(flags: TrainFlags, signal: AbortSignal): Promise<boolean> {
  // Fails before the data is read and a tokenizer is trained.
  const device = applyRuntimeFlags('train', flags);
  ones([1], { device }).dispose();
  if (flags.device === 'auto') say(`device: ${device}`);
  await new RunFolder(flags.out).check();
  const { pairs, report } = await read(flags.train, flags, signal);
  const validation =
    flags.validate === undefined ? null : await read(flags.validate, flags, signal);

  const progress = new WorkProgress();
  const tokenizer = await makeTokenizer(pairs, flags, progress, signal);
  const special = findSpecialIds(tokenizer, { pad: flags.pad, bos: flags.bos, eos: flags.eos });
  const specialIds = { pad: special.pad, bos: special.bos, eos: special.eos };
  say(`tokenizer: ${tokenizer.vocabSize} tokens; ${describeSpecialIds(special)}`);

  const encode = async (read: { pairs: SentencePair[]; report: DataReport }) => {
    const dataset = await TranslationDataset.fromPairs(read.pairs, {
      tokenizer,
      specialIds,
      maxLength: flags.maxLength,
      report: read.report,
      signal,
      onProgress: (done, total) => progress.update('encoding pairs', done, total),
    }).finally(() => progress.finish());
    say(describeReport(dataset.report));
    return dataset;
  };
  const trainSet = await encode({ pairs, report });
  const validationSet = validation === null ? null : await encode(validation);

  manualSeed(flags.seed);
  const model = makeModel(tokenizer.vocabSize, {
    ...modelOptionsOf(flags),
    maxLen: flags.maxLength,
  }).to({ device, dtype: flags.dtype === 'float64' ? 'float64' : 'float32' });
  say(`model: ${model.parameterCount().toLocaleString('en-US')} parameters`);

  const { seed, epochs } = flags;
  const columns = { source: flags.src, target: flags.tgt };
  const batchOptions = {
    ...(flags.batchTokens === undefined
      ? { batchSize: flags.batchSize }
      : { tokens: flags.batchTokens }),
    bucket: flags.bucket === true,
    device,
  };
  const trainer = new Trainer(model, {
    specialIds,
    tokenizer,
    columns,
    out: flags.out,
    overwrite: flags.overwrite === true,
    schedule: scheduleOf(flags),
    dtype: flags.dtype === 'float64' ? 'float32' : flags.dtype,
    accumulate: flags.accumulate,
    ...(flags.clip === undefined ? {} : { clip: flags.clip }),
    samples: samplesOf(validation?.pairs ?? [], validationSet, flags.samples),
    reporter: new CommandProgress(),
  });
  const result = await trainer
    .fit((epoch) => batches(trainSet, { ...batchOptions, shuffle: true, seed, epoch }), {
      epochs,
      signal,
      ...(validationSet === null ? {} : { validation: () => batches(validationSet, batchOptions) }),
    })
    .catch(async (error: unknown) => {
      // The model may be hours of work, so this tries another disk.
      if (isSaveFault(error) && trainer.history.steps.length > 0) {
        await saveElsewhere(model, { specialIds, tokenizer, columns });
      }
      throw error;
    });
  if (result.aborted && result.steps === 0) return false;
  const { best } = result;
  process.stdout.write(
    best === null
      ? `${join(flags.out, 'last')}: the model after ${counted(result.steps, 'step')}\n`
      : `${join(flags.out, 'best')}: epoch ${best.epoch}, validation loss ${best.loss.toFixed(4)}\n`,
  );
  return true;
}

async function read(
  file: string,
  { src, tgt, format, delimiter, quotes, onMalformed }: TrainFlags,
  signal: AbortSignal,
): Promise<{ pairs: SentencePair[]; report: DataReport }> {
  const quoted = quotes ? undefined : false;
  return readPairs(file, { src, tgt, format, delimiter, quoted, onMalformed, signal });
}

async function makeTokenizer(
  pairs: readonly SentencePair[],
  flags: TrainFlags,
  progress: WorkProgress,
  signal: AbortSignal,
): Promise<Tokenizer> {
  if (flags.tokenizer !== undefined) return Tokenizer.fromFile(flags.tokenizer);
  say(`training a tokenizer on the columns "${flags.src}" and "${flags.tgt}"`);
  // Longer texts are also left out of the training.
  const texts = pairs
    .flatMap(({ src, tgt }) => [src, tgt])
    .filter((text) => text.length <= maxTextLength);
  const json = await trainBpe(texts, {
    vocabSize: flags.vocabSize,
    signal,
    onProgress: ({ part, done, total }) => {
      const what =
        part === 'texts' ? 'tokenizer: counting words of texts' : 'tokenizer: merging tokens';
      progress.update(what, done, total ?? texts.length);
    },
  }).finally(() => progress.finish());
  return Tokenizer.fromJson(json);
}

/** The first sources of the validation set, which does not contain texts that are too long. */
function samplesOf(
  pairs: readonly SentencePair[],
  dataset: TranslationDataset | null,
  count: number,
): string[] {
  const rows = new Set(dataset?.pairs.slice(0, count).map(({ row }) => row));
  return pairs.filter(({ row }) => rows.has(row)).map(({ src }) => src);
}

/** Shows messages in the terms of the command line. */
class CommandProgress extends ProgressBar {
  override message(text: string): void {
    super.message(commandWording(text));
  }
}

function isSaveFault(error: unknown): boolean {
  return error instanceof TorchError && error.code === 'ERR_CHECKPOINT';
}

/** Saves a model that cannot be saved in its folder to the folder for temporary files. */
async function saveElsewhere(model: Transformer, options: SaveModelOptions): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'torchformer-'));
  try {
    await saveModel(join(folder, 'last'), model, options);
    say(`the current model has been saved in ${join(folder, 'last')} instead`);
  } catch {
    // The error of the requested folder is reported.
    await rm(folder, { recursive: true, force: true });
  }
}

function scheduleOf(flags: TrainFlags) {
  if (flags.schedule === 'constant') {
    return warmup(flags.lr ?? defaultRate, flags.warmup ?? defaultWarmup);
  }
  return noam({
    dModel: flags.dModel,
    warmup: flags.warmup ?? paperWarmup,
    factor: flags.lr ?? 1,
  });
}

/** The models of an earlier run may have taken hours, so they are replaced only on request. */
async function refuseOldRun(out: string, command: Command): Promise<void> {
  const models = await new RunFolder(out).models();
  if (models.length === 0) return;
  command.error(
    `error: ${out} has the models of an earlier run (${models.map((name) => `${name}/`).join(', ')}); ` +
      'choose another --out, or use --overwrite',
  );
}

/** Progress goes to standard error; standard output has only the result. */
function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
