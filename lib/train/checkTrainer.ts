/** Checks of the trainer's arguments. */
import { checkTokenizer } from '../data/tokenizers/tokenizer.js';
import { Optimizer } from '../optim/optimizer.js';
import { Adam } from '../optim/adam.js';
import type { Schedule } from '../optim/schedule.js';
import {
  checkArray,
  checkBoolean,
  checkChoice,
  checkFunction,
  checkInteger,
  checkMethods,
  checkNonNegative,
  checkObject,
  checkOptions,
  checkPath,
  checkPositive,
  checkPositiveOrInfinite,
  checkRequiredOptions,
  checkSignal,
  checkString,
  describe,
} from '../runtime/arguments.js';
import type { Tensor } from '../tensor/tensor.js';
import { checkBatchSource } from './batchSource.js';
import { checkedSmoothing } from '../nn/loss/labelSmoothing.js';
import { checkReport } from '../data/report.js';
import { checkListener } from './run/events.js';
import type { FitOptions, TrainerOptions, TrainingOptimizer } from './trainerOptions.js';
import { warmup } from '../optim/schedule.js';

const optionNames = [
  'specialIds',
  'learningRate',
  'warmup',
  'schedule',
  'optimizer',
  'accumulate',
  'clip',
  'labelSmoothing',
  'smoothingForm',
  'nonFinite',
  'dtype',
  'graphs',
  'out',
  'overwrite',
  'resume',
  'settings',
  'saveEvery',
  'keepLast',
  'keepBest',
  'select',
  'tokenizer',
  'columns',
  'averaging',
  'report',
  'data',
  'scores',
  'samples',
  'reporter',
  'listeners',
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
  checkedSmoothing(owner, options);
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
  const { tokenizer, columns, samples, reporter, listeners } = options;
  checkSettings(owner, options);
  checkSaves(owner, options);
  checkScores(owner, options);
  if (tokenizer !== undefined) checkTokenizer(owner, tokenizer);
  if (columns !== undefined) {
    const form = '{ source, target } with the names of two columns';
    const { source, target } = checkObject(owner, 'columns', columns, form);
    checkString(owner, 'columns.source', source);
    checkString(owner, 'columns.target', target);
  }
  if (samples !== undefined) {
    checkArray(owner, 'samples', samples, 'an array of texts');
    samples.forEach((sample, index) => {
      checkSample(owner, `samples[${index}]`, sample);
    });
    if (samples.length > 0 && tokenizer === undefined) {
      throw new TypeError(`${owner}: samples need the tokenizer; pass it as an option`);
    }
  }
  if (reporter !== undefined && reporter !== null) checkListener(owner, 'reporter', reporter);
  if (listeners !== undefined) {
    checkArray(owner, 'listeners', listeners, 'an array of listeners');
    listeners.forEach((listener, index) => {
      checkListener(owner, `listeners[${index}]`, listener);
    });
  }
}

function checkScores(owner: string, { scores, tokenizer, select }: TrainerOptions): void {
  if (scores === undefined) {
    if (select === undefined || select === 'loss') return;
    throw new TypeError(`${owner}: select '${select}' needs scores, sentences to translate`);
  }
  checkRequiredOptions(`${owner} scores`, scores, ['pairs', 'search', 'bleu', 'chrf'], 'pairs');
  const { pairs } = scores;
  checkArray(owner, 'scores.pairs', pairs, 'an array of { source, reference }');
  pairs.forEach((pair, index) => {
    const name = `scores.pairs[${index}]`;
    const { source, reference } = checkObject(owner, name, pair, '{ source, reference }');
    checkString(owner, `${name}.source`, source);
    checkString(owner, `${name}.reference`, reference);
  });
  if (tokenizer === undefined) {
    throw new TypeError(`${owner}: scores need the tokenizer; pass it as an option`);
  }
}

function checkSample(owner: string, name: string, sample: unknown): void {
  if (typeof sample === 'string') return;
  const { source, reference } = checkObject(owner, name, sample, 'a text or { source, reference }');
  checkString(owner, `${name}.source`, source);
  checkString(owner, `${name}.reference`, reference);
}

function checkSettings(owner: string, { averaging, data, settings }: TrainerOptions): void {
  if (averaging !== undefined) {
    checkObject(owner, 'averaging', averaging, 'an object such as { decay: 0.999 }');
  }
  if (data !== undefined) {
    checkArray(owner, 'data', data, 'an array of reports such as dataset.report');
    for (const report of data) checkReport(owner, report);
  }
  if (settings !== undefined) checkObject(owner, 'settings', settings, 'an object of JSON values');
}

function checkSaves(owner: string, options: TrainerOptions): void {
  const { out, overwrite, resume, report, saveEvery, keepLast, keepBest, select } = options;
  if (out !== undefined) checkPath(owner, 'out', out);
  if (overwrite !== undefined) checkBoolean(owner, 'overwrite', overwrite);
  if (resume !== undefined) checkBoolean(owner, 'resume', resume);
  if (report !== undefined) checkBoolean(owner, 'report', report);
  if (overwrite === true && resume === true) {
    throw new TypeError(`${owner}: pass either resume, or overwrite, which removes the run`);
  }
  if (saveEvery !== undefined) checkInteger(owner, 'saveEvery', saveEvery, 1);
  if (keepLast !== undefined) checkInteger(owner, 'keepLast', keepLast, 0);
  if (keepBest !== undefined) checkInteger(owner, 'keepBest', keepBest, 0);
  if (select !== undefined) checkChoice(owner, 'select', select, ['loss', 'bleu', 'chrf']);
  const needing = Object.entries({ resume, report, saveEvery, keepLast, keepBest }).filter(
    ([, value]) => value !== undefined && value !== false && value !== 0,
  );
  if (out === undefined && needing.length > 0) {
    throw new TypeError(
      `${owner}: ${needing.map(([name]) => name).join(', ')} needs out, a folder`,
    );
  }
}

function checkOptimizer(owner: string, optimizer: unknown): void {
  const expected = 'an optimizer such as new Adam(model.parameters())';
  checkMethods(owner, 'optimizer', optimizer, ['zeroGrad', 'stepAsync'], expected);
  checkNonNegative(owner, 'optimizer.lr', (optimizer as TrainingOptimizer).lr);
}

const fitOptionNames = [
  'epochs',
  'steps',
  'minutes',
  'patience',
  'validation',
  'validateEvery',
  'extend',
  'signal',
];

/** @throws TypeError, RangeError if an argument of `Trainer.fit` is invalid, or while a fit is running */
export function checkFitArguments(
  train: unknown,
  options: FitOptions | undefined,
  running: boolean,
): void {
  const owner = 'Trainer.fit';
  checkBatchSource(owner, 'train', train);
  if (options === undefined) {
    throw new TypeError(`${owner}: options with epochs, steps or minutes are required`);
  }
  checkOptions(owner, options, fitOptionNames);
  const { epochs, steps, minutes, patience, validation, validateEvery, extend, signal } = options;
  if (epochs === undefined && steps === undefined && minutes === undefined) {
    throw new TypeError(`${owner}: pass epochs, steps or minutes, or training would never end`);
  }
  if (epochs !== undefined) checkInteger(owner, 'epochs', epochs, 1);
  if (steps !== undefined) checkInteger(owner, 'steps', steps, 1);
  if (minutes !== undefined) checkPositive(owner, 'minutes', minutes);
  if (patience !== undefined) checkInteger(owner, 'patience', patience, 1);
  if (validateEvery !== undefined) checkInteger(owner, 'validateEvery', validateEvery, 1);
  if (extend !== undefined) checkBoolean(owner, 'extend', extend);
  checkSignal(owner, 'signal', signal);
  if (validation !== undefined) checkBatchSource(owner, 'validation', validation);
  const needing = Object.entries({ patience, validateEvery }).filter(([, v]) => v !== undefined);
  if (validation === undefined && needing.length > 0) {
    throw new TypeError(`${owner}: ${needing.map(([name]) => name).join(', ')} needs validation`);
  }
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
