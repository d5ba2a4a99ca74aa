/** Checks of the trainer's arguments. */
import { checkTokenizer } from '../data/tokenizers/tokenizer.js';
import { Optimizer } from '../optim/optimizer.js';
import { Adam } from '../optim/adam.js';
import type { Schedule } from '../optim/schedule.js';
import {
  checkBoolean,
  checkChoice,
  checkFunction,
  checkInteger,
  checkMethods,
  checkNonNegative,
  checkObject,
  checkPath,
  checkPositive,
  checkPositiveOrInfinite,
  checkRequiredOptions,
  checkSignal,
  checkString,
  checkStrings,
  describe,
} from '../runtime/arguments.js';
import type { Tensor } from '../tensor/tensor.js';
import { checkBatchSource } from './batchSource.js';
import type { FitOptions, TrainerOptions, TrainingOptimizer } from './trainerOptions.js';
import { warmup } from './warmup.js';

const optionNames = [
  'specialIds',
  'learningRate',
  'warmup',
  'schedule',
  'optimizer',
  'accumulate',
  'clip',
  'nonFinite',
  'dtype',
  'graphs',
  'out',
  'overwrite',
  'tokenizer',
  'columns',
  'samples',
  'reporter',
];

/** @throws TypeError, RangeError if an option is invalid */
export function checkTrainerOptions(options: TrainerOptions): void {
  const owner = 'Trainer';
  checkRequiredOptions(owner, options, optionNames, 'specialIds');
  const { learningRate, warmup, schedule, optimizer, accumulate, clip, nonFinite } = options;
  // Whether they fit the vocabulary is checked with the model.
  checkObject(owner, 'specialIds', options.specialIds, '{ pad, bos, eos }');
  if (learningRate !== undefined) checkPositive(owner, 'learningRate', learningRate);
  if (warmup !== undefined) checkInteger(owner, 'warmup', warmup, 0);
  if (schedule !== undefined) {
    const expected = 'a function of the step such as noam({ dModel })';
    checkFunction(owner, 'schedule', schedule, expected);
    if (learningRate !== undefined || warmup !== undefined) {
      throw new TypeError(`${owner}: pass either schedule, or learningRate and warmup`);
    }
  }
  if (optimizer !== undefined) checkOptimizer(owner, optimizer);
  if (accumulate !== undefined) checkInteger(owner, 'accumulate', accumulate, 1);
  if (clip !== undefined) checkPositiveOrInfinite(owner, 'clip', clip);
  checkTrainingDType(owner, options);
  checkGraphs(owner, options);
  if (nonFinite !== undefined) checkChoice(owner, 'nonFinite', nonFinite, ['stop', 'skip']);
  checkReports(owner, options);
}

function checkTrainingDType(owner: string, { dtype, optimizer }: TrainerOptions): void {
  if (dtype === undefined || dtype === 'float32' || dtype === 'bfloat16') return;
  if (dtype !== 'float16') {
    throw new TypeError(
      `${owner}: dtype must be 'float32', 'bfloat16' or 'float16', got ${describe(dtype)}; ` +
        'for any other dtype, convert the model: model.to({ dtype })',
    );
  }
  if (optimizer !== undefined && !(optimizer instanceof Adam)) {
    throw new TypeError(
      `${owner}: dtype 'float16' scales the loss, which only Adam and AdamW can undo; ` +
        "pass one of them as optimizer, omit optimizer, or use dtype 'bfloat16'",
    );
  }
}

function checkGraphs(owner: string, options: TrainerOptions): void {
  const { graphs, accumulate = 1, optimizer, dtype } = options;
  if (graphs === undefined) return;
  checkBoolean(owner, 'graphs', graphs);
  if (!graphs) return;
  const obstacle =
    accumulate > 1
      ? `accumulate ${accumulate}`
      : dtype === 'float16'
        ? "dtype 'float16', whose loss scale changes"
        : optimizer !== undefined && !(optimizer instanceof Adam)
          ? 'an optimizer other than Adam and AdamW'
          : null;
  if (obstacle === null) return;
  throw new TypeError(`${owner}: graphs cannot record steps with ${obstacle}; omit one of them`);
}

/** Checks the options for what the trainer writes and reports. */
function checkReports(owner: string, options: TrainerOptions): void {
  const { out, overwrite, tokenizer, columns, samples, reporter } = options;
  if (out !== undefined) checkPath(owner, 'out', out);
  if (overwrite !== undefined) checkBoolean(owner, 'overwrite', overwrite);
  if (tokenizer !== undefined) checkTokenizer(owner, tokenizer);
  if (columns !== undefined) {
    const form = '{ source, target } with the names of two columns';
    const { source, target } = checkObject(owner, 'columns', columns, form);
    checkString(owner, 'columns.source', source);
    checkString(owner, 'columns.target', target);
  }
  if (samples !== undefined) {
    checkStrings(owner, 'samples', samples);
    if (samples.length > 0 && tokenizer === undefined) {
      throw new TypeError(`${owner}: samples need the tokenizer; pass it as an option`);
    }
  }
  if (reporter !== undefined && reporter !== null) {
    const methods = ['batch', 'epoch', 'message', 'finish'];
    const expected = `null or a reporter with the methods ${methods.join(', ')}`;
    checkMethods(owner, 'reporter', reporter, methods, expected);
  }
}

function checkOptimizer(owner: string, optimizer: unknown): void {
  const expected = 'an optimizer such as new Adam(model.parameters())';
  checkMethods(owner, 'optimizer', optimizer, ['zeroGrad', 'stepAsync'], expected);
  checkNonNegative(owner, 'optimizer.lr', (optimizer as TrainingOptimizer).lr);
}

/** @throws TypeError, RangeError if an argument of `Trainer.fit` is invalid, or while a fit is running */
export function checkFitArguments(train: unknown, options: FitOptions, running: boolean): void {
  const owner = 'Trainer.fit';
  checkBatchSource(owner, 'train', train);
  checkRequiredOptions(owner, options, ['epochs', 'validation', 'signal'], 'epochs');
  checkInteger(owner, 'epochs', options.epochs, 1);
  checkSignal(owner, 'signal', options.signal);
  if (options.validation !== undefined) checkBatchSource(owner, 'validation', options.validation);
  if (running) {
    throw new TypeError(`${owner}: a fit of this trainer is still running; await it first`);
  }
}

/** An optimizer for another model would silently train nothing. */
export function checkParameters(optimizer: unknown, parameters: readonly Tensor[]): void {
  if (!(optimizer instanceof Optimizer)) return;
  const own = new Set(parameters);
  if (optimizer.parameters().some((parameter) => own.has(parameter))) return;
  throw new TypeError(
    'Trainer: optimizer has no trainable parameter of the model; create it with model.parameters()',
  );
}

/** The schedule; null if the optimizer keeps its own learning rate. */
export function scheduleOf(options: TrainerOptions): Schedule | null {
  const { schedule, learningRate, optimizer } = options;
  if (schedule !== undefined) return schedule;
  if (optimizer === undefined) return warmup(learningRate ?? 5e-4, options.warmup ?? 0);
  if (learningRate === undefined && options.warmup === undefined) return null;
  return warmup(learningRate ?? optimizer.lr, options.warmup ?? 0);
}
