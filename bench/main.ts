/** `npm run bench`: see README.md in this folder. */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { CommanderError } from 'commander';
import { benchBridge } from './bridge.js';
import { limitChildren } from './child.js';
import { benchDecode } from './decode/benchDecode.js';
import { benchLearning } from './learning.js';
import { benchLoad } from './load.js';
import { describeMachine, examineMachine } from './machine.js';
import { benchMemory } from './memory/benchMemory.js';
import { benchModules } from './modules.js';
import { benchNative } from './native.js';
import { parseOptions, type BenchOptions, type SuiteName } from './options.js';
import { benchProducts } from './products/benchProducts.js';
import { profileTraining } from './profile.js';
import { failures, print, say } from './report.js';
import { benchResponsiveness } from './responsiveness/benchResponsiveness.js';
import { benchServe } from './serve/benchServe.js';
import { benchTranslator } from './translator/benchTranslator.js';
import { fetchTokenizer } from './tokenizerFile.js';
import { benchTrain } from './train.js';

const suites: Record<SuiteName, (options: BenchOptions) => Promise<unknown>> = {
  train: benchTrain,
  modules: benchModules,
  native: benchNative,
  products: benchProducts,
  bridge: benchBridge,
  load: benchLoad,
  learning: benchLearning,
  decode: benchDecode,
  responsiveness: benchResponsiveness,
  serve: benchServe,
  memory: benchMemory,
  translator: benchTranslator,
};

/** Suites that need no Python. */
const withoutPeers: readonly SuiteName[] = [
  'native',
  'products',
  'responsiveness',
  'serve',
  'memory',
];

// Without a handler a signal would end this process and leave the participant running.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => process.exit(1));
}

try {
  process.exitCode = await bench(process.argv.slice(2));
} catch (error) {
  // Commander has already printed its message.
  if (error instanceof CommanderError) process.exitCode = error.exitCode;
  else {
    say(`failed: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}

async function bench(args: readonly string[]): Promise<number> {
  const options = parseOptions(args);
  if (options.fetchTokenizer) {
    print(await fetchTokenizer());
    return 0;
  }
  limitChildren(options.limit);
  const machine = examineMachine(options.threads);
  print(describeMachine(machine));
  const results: Record<string, unknown> = {};
  if (options.profile) {
    results['profile'] = await profileTraining(options);
  } else {
    if (options.omitted !== undefined) print(options.omitted);
    const hasPeers = options.suites.some((name) => !withoutPeers.includes(name));
    if (hasPeers && options.peers.length > 0) await checkPython(options.python);
    for (const name of options.suites) results[name] = await suites[name](options);
  }
  if (options.json !== undefined) {
    const report = { machine, results, failures };
    await writeFile(options.json, `${JSON.stringify(report, null, 2)}\n`);
  }
  if (failures.length > 0) print(`\nFailed:\n${failures.map((text) => `- ${text}`).join('\n')}`);
  return failures.length > 0 ? 1 : 0;
}

/** Fails now rather than after the first of our turns. */
async function checkPython(python: string): Promise<void> {
  try {
    await promisify(execFile)(python, ['-c', 'import torch, numpy']);
  } catch (error) {
    const { code, stderr = '' } = error as { code?: unknown; stderr?: string };
    const reason = code === 'ENOENT' ? 'was not found' : stderr.trim().split('\n').at(-1);
    throw new Error(
      `the Python for the peers, ${python}: ${reason}; install bench/peers/requirements.txt into ` +
        'it, choose another one with --python or TORCHFORMER_BENCH_PYTHON, or use --peers none',
    );
  }
}
