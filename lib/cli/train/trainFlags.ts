/** The flags of `torchformer train`, which are also the keys of its `--config` file. */
import { Option, type Command } from 'commander';
import { defaultSpecialTokens } from '../../data/tokenizers/trainTokenizer.js';
import type { SmoothingForm } from '../../nn/loss/labelSmoothing.js';
import type { Selection } from '../../train/run/runProgress.js';
import { addFormatFlags, type DataFlags } from '../dataFlags.js';
import {
  integer,
  nonEmpty,
  nonNegativeNumber,
  path,
  positiveNumber,
  probability,
  tokenOrId,
  trainingDType,
} from '../flagValues.js';
import { addRuntimeFlags, type RuntimeFlags } from '../runtimeFlags.js';
import { addFineTuningFlags, type FineTuningFlags } from './fineTuning.js';
import { addModelFlags, type ModelFlags } from './modelFlags.js';

/** Values of the flags. Those without a default may be undefined. */
export interface TrainFlags extends ModelFlags, RuntimeFlags, DataFlags, FineTuningFlags {
  config?: string;
  train: string;
  validate?: string;
  maxLength: number;
  tokenizer?: string;
  vocabSize: number;
  pad?: string | number;
  bos?: string | number;
  eos?: string | number;
  batchSize: number;
  batchTokens?: number;
  bucket?: boolean;
  accumulate: number;
  epochs?: number;
  steps?: number;
  minutes?: number;
  patience?: number;
  seed: number;
  dtype: 'float32' | 'float64' | 'bfloat16' | 'float16';
  graphs?: boolean;
  optimizer: OptimizerName;
  beta1: number;
  beta2?: number;
  eps?: number;
  weightDecay?: number;
  decayEmbeddings: boolean;
  ema?: number;
  schedule: ScheduleName;
  lr?: number;
  warmup?: number;
  labelSmoothing: number;
  smoothingForm: SmoothingForm;
  clip?: number;
  validateEvery?: number;
  select: Selection;
  scores: number;
  beam: number;
  samples: number;
  out: string;
  overwrite?: boolean;
  resume?: boolean;
  extend?: boolean;
  saveEvery?: number;
  keepLast: number;
  keepBest: number;
  tensorboard?: boolean;
  report: boolean;
  dryRun?: boolean;
}

/** Optimizers by their flag. */
export type OptimizerName = 'adam' | 'adamw' | 'adafactor';
/** Schedules by their flag. */
export type ScheduleName = 'constant' | 'noam' | 'inverse-sqrt' | 'cosine' | 'linear';

export const defaultRate = 5e-4;
export const defaultAdafactorRate = 1e-2;
export const defaultWarmup = 400;
export const paperWarmup = 4000;
export const defaultEpochs = 10;
/** Special tokens and bytes, which every trained vocabulary has. */
export const smallestVocabulary = defaultSpecialTokens.length + 256;

/** Flags that are not part of a run's settings: a config file may not have them. */
export const flagsOfTheCall: readonly string[] = [
  'config',
  'overwrite',
  'resume',
  'extend',
  'dryRun',
];

/** Adds all flags, in groups that are also the sections of a config file. */
export function addTrainFlags(command: Command): Command {
  command.option(
    '--config <file>',
    'YAML with the settings, named like the flags; flags have priority',
    path,
  );
  addDataFlags(command);
  addModelFlags(command);
  addFineTuningFlags(command);
  addTrainingFlags(command);
  addValidationFlags(command);
  addRunFlags(command);
  return addRuntimeFlags(command);
}

function addDataFlags(command: Command): void {
  command
    .optionsGroup('Data:')
    .option('--train <file>', 'pairs to train on: CSV or TSV, plain or gzip (required)', path)
    .option(
      '--validate <file>',
      'pairs that select the best model; without them only the last one is saved',
      path,
    )
    .option('--src <column>', 'name of the column with the source sentences (required)', nonEmpty)
    .option('--tgt <column>', 'name of the column with the target sentences (required)', nonEmpty);
  addFormatFlags(command)
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
    .option('--vocab-size <tokens>', 'vocabulary size of the trained tokenizer', integer(1), 8000);
  for (const [name, use] of [
    ['pad', 'pads batches'],
    ['bos', 'begins a sentence'],
    ['eos', 'ends a sentence'],
  ] as const) {
    const text = `token that ${use}, or its id (default: found by its name)`;
    command.option(`--${name} <token>`, text, tokenOrId);
  }
}

function addTrainingFlags(command: Command): void {
  command
    .optionsGroup('Training:')
    .option(
      '--epochs <count>',
      `passes over the training pairs (default: ${defaultEpochs})`,
      integer(1),
    )
    .option('--steps <count>', 'instead of --epochs, or besides: optimizer steps', integer(1))
    .option('--minutes <count>', 'instead of --epochs, or besides: minutes', positiveNumber)
    .option(
      '--patience <count>',
      'stop after this number of validations in a row that are not the best',
      integer(1),
    )
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
      choice(
        '--optimizer <name>',
        'adam; adamw with decoupled weight decay of matrices; adafactor, whose state takes almost no ' +
          'memory and whose --lr is relative to the size of the weights',
        ['adam', 'adamw', 'adafactor'],
        'adam',
      ),
    )
    .option('--beta1 <number>', 'decay of the mean of the gradients', probability, 0.9)
    .option(
      '--beta2 <number>',
      'decay of the mean of their squares (default: 0.999, noam: 0.98)',
      probability,
    )
    .option(
      '--eps <number>',
      'added to the root of the mean square (default: 1e-8, noam: 1e-9)',
      nonNegativeNumber,
    )
    .option(
      '--weight-decay <number>',
      'of the matrices, with adamw (default: 0.01) or adafactor (default: 0)',
      nonNegativeNumber,
    )
    .option('--no-decay-embeddings', 'no weight decay of embeddings')
    .option(
      '--ema <decay>',
      'average the weights over the steps with this decay, such as 0.999: the average is validated and ' +
        'saved as the best model',
      probability,
    )
    .addOption(
      choice(
        '--schedule <name>',
        'learning rate after the warmup: constant, the formula of the paper (noam), falling with the ' +
          'square root of the step (inverse-sqrt), or to 0 at --steps (cosine, linear)',
        ['constant', 'noam', 'inverse-sqrt', 'cosine', 'linear'],
        'constant',
      ),
    )
    .option(
      '--lr <rate>',
      `learning rate; with --schedule noam the formula's factor (default: ${defaultRate}, noam: 1, ` +
        `adafactor: ${defaultAdafactorRate})`,
      positiveNumber,
    )
    .option(
      '--warmup <steps>',
      `steps in which the rate increases (default: ${defaultWarmup}, noam: ${paperWarmup})`,
      integer(0),
    )
    .option(
      '--label-smoothing <share>',
      'part of each target given to other words; the paper: 0.1',
      probability,
      0,
    )
    .addOption(
      choice(
        '--smoothing-form <form>',
        'crossEntropy: given to all words, as in PyTorch; klDivergence: to all but the target and pad, ' +
          'as in The Annotated Transformer',
        ['crossEntropy', 'klDivergence'],
        'crossEntropy',
      ),
    )
    .option('--clip <norm>', 'maximum norm of the gradients (default: no clipping)', positiveNumber)
    .option('--seed <number>', 'seed of weights, order and dropout', integer(0), 1)
    .option(
      '--dtype <type>',
      'float32, float64, or products in bf16 or fp16 with everything else in float32',
      trainingDType,
      'float32',
    )
    .option('--graphs', 'on a GPU: record steps as CUDA graphs');
}

function addValidationFlags(command: Command): void {
  command
    .optionsGroup('Validation:')
    .option(
      '--validate-every <steps>',
      'validate after each of this many steps, and at the end (default: after each epoch)',
      integer(1),
    )
    .option(
      '--scores <count>',
      'validation pairs that are translated for BLEU and chrF at each validation',
      integer(0),
      0,
    )
    .option('--beam <size>', 'beam of these translations; 1: greedy', integer(1), 1)
    .addOption(
      choice(
        '--select <value>',
        'what the best model is chosen by; scores need --scores',
        ['loss', 'bleu', 'chrf'],
        'loss',
      ),
    )
    .option('--samples <count>', 'validation sources to translate and show', integer(0), 3);
}

function addRunFlags(command: Command): void {
  command
    .optionsGroup('Run:')
    .option('--out <folder>', 'folder of the run: its models, its state, its log (required)', path)
    .option('--overwrite', 'replace the run in --out')
    .option('--resume', 'continue the run in --out, to the bit; without one, begin it')
    .option(
      '--extend',
      'with --resume: other --epochs, --steps, --minutes or --patience than before',
    )
    .option(
      '--save-every <steps>',
      'save the run after each of this many steps, besides after each validation and epoch',
      integer(1),
    )
    .option('--keep-last <count>', 'latest models to keep in checkpoints/', integer(0), 0)
    .option('--keep-best <count>', 'best models to keep in checkpoints/', integer(0), 0)
    .option('--tensorboard', 'write the curves for TensorBoard too')
    .option('--no-report', 'write no report.html')
    .option('--dry-run', 'measure memory and time, and stop before the first step');
}

function choice(flag: string, text: string, choices: readonly string[], byDefault: string): Option {
  return new Option(flag, text).choices(choices).default(byDefault);
}
