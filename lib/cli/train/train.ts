/** `torchformer train` */
import type { Command } from 'commander';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { batches, type BatchOptions } from '../../data/batching/batches.js';
import { TranslationDataset } from '../../data/dataset.js';
import type { SentencePair } from '../../data/reading/pairReader.js';
import { describeReport, type DataReport } from '../../data/report.js';
import { describeSpecialIds, findSpecialIds } from '../../data/tokenizers/specialIds.js';
import { maxTextLength } from '../../data/text.js';
import { Tokenizer } from '../../data/tokenizers/tokenizer.js';
import { trainBpe } from '../../data/tokenizers/trainTokenizer.js';
import { writeFileAtomically } from '../../io/atomicFile.js';
import { saveModel, type SaveModelOptions } from '../../io/checkpoint.js';
import { currentFolder } from '../../io/replaceFolder.js';
import { makeModel } from '../../nn/model/makeModel.js';
import type { Transformer } from '../../nn/model/transformer.js';
import { decayGroups } from '../../nn/model/decayGroups.js';
import { Adafactor } from '../../optim/adafactor.js';
import { Adam, AdamW } from '../../optim/adam.js';
import type { Optimizer, BaseSettings } from '../../optim/optimizer.js';
import {
  cosine,
  inverseSquareRoot,
  linearDecay,
  noam,
  warmup,
  type Schedule,
} from '../../optim/schedule.js';
import { counted } from '../../runtime/counted.js';
import { TorchError } from '../../runtime/errors.js';
import { ones } from '../../tensor/create.js';
import { manualSeed } from '../../tensor/random.js';
import { ProgressBar } from '../../train/run/progress.js';
import { describeEstimate } from '../../train/estimate/describeEstimate.js';
import { estimateTraining } from '../../train/estimate/estimateTraining.js';
import { RunFolder } from '../../train/run/runFolder.js';
import type { JsonValue } from '../../io/modelConfig.js';
import type { Settings } from '../../train/run/settings.js';
import { TensorBoardWriter } from '../../train/report/tensorBoard/tensorBoardWriter.js';
import { Trainer } from '../../train/trainer.js';
import { readPairsOf } from '../dataFlags.js';
import { applyRuntimeFlags } from '../runtimeFlags.js';
import { withInterrupts } from '../signals.js';
import { commandWording } from '../wording.js';
import { WorkProgress } from '../workProgress.js';
import { applyConfigFile, configText } from './configFile.js';
import { fineTuningFault, prepareFineTuning } from './fineTuning.js';
import { modelFlagsFault, modelOptionsOf } from './modelFlags.js';
import {
  addTrainFlags,
  defaultAdafactorRate,
  defaultEpochs,
  defaultRate,
  defaultWarmup,
  flagsOfTheCall,
  paperWarmup,
  smallestVocabulary,
  type TrainFlags,
} from './trainFlags.js';

export function registerTrain(program: Command): void {
  const command = program
    .command('train')
    .description('Train a translator on a CSV or TSV file of sentence pairs.');
  addTrainFlags(command)
    .addHelpText(
      'after',
      '\nCtrl-C stops after the current step and saves the run; so do SIGTERM, SIGHUP, SIGUSR1 and\n' +
        'SIGUSR2. A second signal ends immediately, and so does SIGQUIT. --resume continues it.\n' +
        'Then: torchformer translate --model <out> "a sentence"',
    )
    .action(async (_given: TrainFlags, command: Command) => {
      const { config } = command.opts<{ config?: string }>();
      if (config !== undefined) await applyConfigFile(command, config, flagsOfTheCall);
      const flags = command.opts<TrainFlags>();
      const fault = faultOf(flags);
      if (fault !== null) command.error(`error: ${fault}`);
      if (flags.overwrite !== true && flags.resume !== true) {
        await refuseOldRun(flags.out, command);
      }
      const settings = configText(command, flagsOfTheCall);
      const trained = await withInterrupts(
        'stopping after this step; a second signal ends immediately',
        (signal) => train(flags, settings, signal),
      );
      if (trained !== true) say('stopped before the first step: nothing was saved');
    });
}

/** What is missing or does not go together; null if nothing is. */
function faultOf(flags: TrainFlags): string | null {
  const missing = (['train', 'src', 'tgt', 'out'] as const).filter((name) => {
    return (flags as Partial<TrainFlags>)[name] === undefined;
  });
  if (missing.length > 0) {
    const names = missing.map((name) => `--${name}`).join(', ');
    return `required: ${names}, as a flag or in the --config file`;
  }
  const { schedule, warmup, steps, optimizer, weightDecay, validate, resume, overwrite } = flags;
  const needsValidation = [
    ...(flags.validateEvery === undefined ? [] : ['--validate-every']),
    ...(flags.patience === undefined ? [] : ['--patience']),
    ...(flags.scores === 0 ? [] : ['--scores']),
  ];
  if (validate === undefined && needsValidation.length > 0) {
    return `${needsValidation.join(', ')} needs --validate`;
  }
  if (flags.select !== 'loss' && flags.scores === 0) {
    return `--select ${flags.select} needs --scores, the number of sentences to translate`;
  }
  if ((schedule === 'noam' || schedule === 'inverse-sqrt') && warmup === 0) {
    return `--schedule ${schedule} needs a --warmup of at least 1`;
  }
  if ((schedule === 'cosine' || schedule === 'linear') && steps === undefined) {
    return `--schedule ${schedule} needs --steps, at which the rate is 0`;
  }
  if (weightDecay !== undefined && optimizer === 'adam') {
    return '--weight-decay needs --optimizer adamw or adafactor';
  }
  if (resume === true && overwrite === true) return '--resume and --overwrite exclude each other';
  if (flags.extend === true && resume !== true) return '--extend needs --resume';
  if (flags.tokenizer === undefined && flags.vocabSize < smallestVocabulary) {
    return (
      `--vocab-size must be at least ${smallestVocabulary} (special tokens and 256 bytes), ` +
      `got ${flags.vocabSize}`
    );
  }
  return modelFlagsFault(flags) ?? fineTuningFault(flags);
}

/**
 * @param settings the settings in force, as YAML
 * @returns whether there is a model: false if it was stopped before the first step
 */
async function train(flags: TrainFlags, settings: string, signal: AbortSignal): Promise<boolean> {
  // Fails before the data is read and a tokenizer is trained.
  const device = applyRuntimeFlags('train', flags);
  ones([1], { device }).dispose();
  if (flags.device === 'auto') say(`device: ${device}`);
  const folder = new RunFolder(flags.out);
  await folder.check();
  const { pairs, report } = await readPairsOf(flags.train, flags, signal);
  const validation =
    flags.validate === undefined ? null : await readPairsOf(flags.validate, flags, signal);

  const progress = new WorkProgress();
  const tokenizer = await makeTokenizer(pairs, folder, flags, progress, signal);
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
  await prepareFineTuning(model, tokenizer, flags, say);
  say(`model: ${model.parameterCount().toLocaleString('en-US')} parameters`);

  const { seed } = flags;
  const columns = { source: flags.src, target: flags.tgt };
  // Made on the CPU and moved without padding by the trainer.
  const batchOptions: BatchOptions = {
    ...(flags.batchTokens === undefined
      ? { batchSize: flags.batchSize }
      : { tokens: flags.batchTokens }),
    bucket: flags.bucket === true,
  };
  const shownPairs = pairsOf(validation?.pairs ?? [], validationSet);
  const stepOptions = {
    dtype: flags.dtype === 'float64' ? 'float32' : flags.dtype,
    accumulate: flags.accumulate,
    labelSmoothing: flags.labelSmoothing,
    smoothingForm: flags.smoothingForm,
    ...(flags.ema === undefined ? {} : { averaging: { decay: flags.ema, warmup: true } }),
  } as const;
  const trainer = new Trainer(model, {
    specialIds,
    tokenizer,
    columns,
    out: flags.out,
    ...defined({ overwrite: flags.overwrite, resume: flags.resume, saveEvery: flags.saveEvery }),
    keepLast: flags.keepLast,
    keepBest: flags.keepBest,
    settings: {
      ...comparedSettings(flags),
      // The schedule's flags say it better.
      learningRate: null,
      trainingPairs: fingerprint(trainSet),
      validationPairs: validationSet === null ? null : fingerprint(validationSet),
      vocabulary: createHash('sha256').update(tokenizer.toJson()).digest('hex').slice(0, 12),
    },
    optimizer: optimizerOf(model, flags),
    schedule: scheduleOf(flags),
    ...stepOptions,
    select: flags.select,
    report: flags.report,
    data: [trainSet.report, ...(validationSet === null ? [] : [validationSet.report])],
    ...defined({ clip: flags.clip, graphs: flags.graphs }),
    ...(flags.scores === 0
      ? {}
      : { scores: { pairs: shownPairs.slice(0, flags.scores), search: { beam: flags.beam } } }),
    samples: shownPairs.slice(0, flags.samples),
    reporter: new CommandProgress(),
    listeners: [
      ...(flags.tensorboard === true
        ? [new TensorBoardWriter({ folder: flags.out, settings: comparedSettings(flags) })]
        : []),
      {
        start: () =>
          writeFileAtomically(join(flags.out, 'config.yaml'), (sink) =>
            sink(Buffer.from(settings)),
          ),
      },
    ],
  });
  const { epochs, steps, minutes } = flags;
  const limits = defined({ epochs, steps, minutes });
  const fitLimits = Object.keys(limits).length === 0 ? { epochs: defaultEpochs } : limits;
  const trainBatches = (epoch: number) =>
    batches(trainSet, { ...batchOptions, shuffle: true, seed, epoch });
  const estimate = await estimateTraining(model, trainBatches, {
    pad: special.pad,
    optimizer: trainer.optimizer,
    ...stepOptions,
    ...fitLimits,
    measure: flags.resume !== true,
  });
  for (const line of describeEstimate(estimate)) say(line);
  if (flags.dryRun === true) return true;
  const result = await trainer
    .fit(trainBatches, {
      ...fitLimits,
      ...defined({ extend: flags.extend }),
      signal,
      ...(validationSet === null
        ? {}
        : {
            validation: () => batches(validationSet, batchOptions),
            ...defined({ patience: flags.patience, validateEvery: flags.validateEvery }),
          }),
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
  if (result.reason === 'patience') say(`stopped: ${flags.patience} validations without progress`);
  process.stdout.write(
    best === null
      ? `${join(flags.out, 'last')}: the model after ${counted(result.steps, 'step')}\n`
      : `${join(flags.out, 'best')}: epoch ${best.epoch}, validation loss ${best.loss.toFixed(4)}\n`,
  );
  return true;
}

/** That of the run if it is resumed, the given one, or a new one. */
async function makeTokenizer(
  pairs: readonly SentencePair[],
  folder: RunFolder,
  flags: TrainFlags,
  progress: WorkProgress,
  signal: AbortSignal,
): Promise<Tokenizer> {
  if (flags.tokenizer !== undefined) return Tokenizer.fromFile(flags.tokenizer);
  const saved = join(await currentFolder(folder.last), 'tokenizer.json');
  if (flags.resume === true && existsSync(saved)) return Tokenizer.fromFile(saved);
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

/** The pairs of the validation set, which does not contain texts that are too long. */
function pairsOf(
  pairs: readonly SentencePair[],
  dataset: TranslationDataset | null,
): { source: string; reference: string }[] {
  const rows = new Set(dataset?.pairs.map(({ row }) => row));
  const kept = pairs.filter(({ row }) => rows.has(row));
  return kept.map(({ src, tgt }) => ({ source: src, reference: tgt }));
}

/** Flags that a run must be resumed with; its data and limits are compared on their own. */
function comparedSettings(flags: TrainFlags): Settings {
  const free = new Set([
    ...flagsOfTheCall,
    ...['train', 'validate', 'tokenizer', 'out', 'threads'],
    ...['epochs', 'steps', 'minutes', 'patience'],
    ...['samples', 'saveEvery', 'keepLast', 'keepBest', 'tensorboard', 'report'],
  ]);
  const settings = Object.entries<JsonValue>({ ...flags });
  return Object.fromEntries(settings.filter(([name]) => !free.has(name)));
}

/** Tells another corpus from the same one: number of pairs, and a digest of their ids. */
function fingerprint(dataset: TranslationDataset): string {
  const hash = createHash('sha256');
  for (const { src, tgt } of dataset) hash.update(Int32Array.from([...src, -1, ...tgt, -2]));
  return `${dataset.length} pairs, ${hash.digest('hex').slice(0, 12)}`;
}

/** The options that have a value. */
function defined<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as { [K in keyof T]?: Exclude<T[K], undefined> };
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

function optimizerOf(model: Transformer, flags: TrainFlags): Optimizer<BaseSettings> {
  const isPapers = flags.schedule === 'noam';
  const { beta1, beta2 = isPapers ? 0.98 : 0.999, eps = isPapers ? 1e-9 : 1e-8 } = flags;
  const { weightDecay = flags.optimizer === 'adamw' ? 0.01 : 0, decayEmbeddings } = flags;
  const trainable = model.parameters().filter(({ requiresGrad }) => requiresGrad);
  if (flags.optimizer === 'adam') return new Adam(trainable, { betas: [beta1, beta2], eps });
  const groups = decayGroups(model, { weightDecay, embeddings: decayEmbeddings })
    .map(({ params, ...group }) => ({
      ...group,
      params: params.filter(({ requiresGrad }) => requiresGrad),
    }))
    .filter(({ params }) => params.length > 0);
  return flags.optimizer === 'adamw'
    ? new AdamW(groups, { betas: [beta1, beta2], eps })
    : new Adafactor(groups);
}

function scheduleOf(flags: TrainFlags): Schedule {
  const { schedule, steps = 0 } = flags;
  const usual = flags.optimizer === 'adafactor' ? defaultAdafactorRate : defaultRate;
  const learningRate = flags.lr ?? usual;
  const warmupSteps = flags.warmup ?? (schedule === 'noam' ? paperWarmup : defaultWarmup);
  switch (schedule) {
    case 'constant':
      return warmup(learningRate, warmupSteps);
    case 'noam':
      return noam({ dModel: flags.dModel, warmup: warmupSteps, factor: flags.lr ?? 1 });
    case 'inverse-sqrt':
      return inverseSquareRoot({ learningRate, warmup: warmupSteps });
    case 'cosine':
      return cosine({ learningRate, warmup: warmupSteps, steps });
    case 'linear':
      return linearDecay({ learningRate, warmup: warmupSteps, steps });
  }
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
