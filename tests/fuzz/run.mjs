/**
 * Fuzzed calls, in a process of their own: a crash takes this process alone.
 *
 *     node tests/fuzz/run.mjs --seed 1 --first 0 --count 10000
 *     node tests/fuzz/run.mjs --seed 1 --first 4711 --count 1     one case alone, with its arguments
 *
 * Each case is made from the seed and its number only. Every call has to end in a value or in an
 * error of the package's own; what does not is told at the end, and the exit code is 1. With
 * `--progress <file>` the number of the running case is always in that file.
 */
import { openSync, writeSync } from 'node:fs';
import { inspect, parseArgs } from 'node:util';
import * as tf from '../../dist/index.js';
import { bridgeCall } from './bridgeCalls.mjs';
import { modelCall, moduleCall, nnFunctionCall, optimizerCall } from './moduleCalls.mjs';
import { nativeOpCall } from './nativeOps.mjs';
import { pipelineCall } from './pipelineCalls.mjs';
import { Random } from './random.mjs';
import { functionCall, methodCall } from './tensorCalls.mjs';
import { problemOf } from './outcome.mjs';

const { values: flags } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    first: { type: 'string', default: '0' },
    count: { type: 'string', default: '10000' },
    progress: { type: 'string' },
  },
});
const [seed, first, count] = [flags.seed, flags.first, flags.count].map(Number);

/** Parts of 100. */
const kinds = [
  [30, methodCall],
  [12, functionCall],
  [28, nativeOpCall],
  [8, moduleCall],
  [5, nnFunctionCall],
  [2, modelCall],
  [3, optimizerCall],
  [6, pipelineCall],
  [6, bridgeCall],
];

function kindOf(r) {
  let number = r.below(100);
  return kinds.find(([parts]) => (number -= parts) < 0)[1];
}

function describeCall({ name, args }) {
  const texts = args.map((value) => inspect(value, { depth: 3, breakLength: 120 }));
  return `${name} with\n  ${texts.join('\n  ').slice(0, 4000)}`;
}

/** Reads what a call gave, so that a tensor over memory that is not its own is found out. */
async function look(value, depth = 0) {
  if (value instanceof tf.Tensor) {
    if (!value.isDisposed && value.numel < 50_000) value.toArray();
  } else if (Array.isArray(value) && depth < 2) {
    for (const one of value.slice(0, 50)) await look(one, depth + 1);
  } else if (typeof value?.dispose === 'function' && !(value instanceof tf.Module)) {
    value.dispose();
  }
}

const threads = tf.getNumThreads();
const progress = flags.progress === undefined ? null : openSync(flags.progress, 'w');

/** Later cases must not depend on what an earlier one has set. */
function startAnew(number) {
  tf.manualSeed(number);
  tf.setNumThreads(threads);
  if (!tf.isGradEnabled()) throw new Error('a case left gradients switched off');
}

let returned = 0;
const problems = [];
// A promise that a case made and left: its error belongs to the case, or to one just before.
process.on('unhandledRejection', (error) => {
  const problem = problemOf(error);
  if (problem !== null) problems.push(`a promise left behind: ${problem}`);
});

async function runCase(number) {
  if (progress !== null) writeSync(progress, String(number).padEnd(12), 0);
  startAnew(number);
  const r = new Random(seed, number);
  const scope = new tf.Scope();
  try {
    const call = scope.run(() => kindOf(r)(r));
    if (count === 1) console.log(`case ${number}: ${describeCall(call)}`);
    try {
      const result = await scope.run(call.run);
      returned++;
      scope.adopt(result);
      await look(result);
      if (count === 1) console.log('gave', result);
    } catch (error) {
      if (count === 1) console.log('threw', error);
      const problem = problemOf(error);
      if (problem !== null) problems.push(`case ${number}, ${call.name}: ${problem}`);
    }
  } finally {
    scope.dispose();
  }
}

for (let number = first; number < first + count; number++) {
  await runCase(number);
  // Lets timers and the collector's callbacks run.
  if (number % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
}
await new Promise((resolve) => setTimeout(resolve, 20));

for (const problem of problems) console.log(problem);
console.log(
  `${count} calls from number ${first} with seed ${seed}: ${returned} gave a value, ` +
    `${problems.length} faults`,
);
process.exitCode = problems.length > 0 ? 1 : 0;
