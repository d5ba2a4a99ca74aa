/** Suite `memory`: the memory of training steps by optimizer. */
import { runOurs } from '../child.js';
import type { BenchOptions } from '../options.js';
import { attempt, print } from '../report.js';
import { describeModel, trainSizes, type SizeName } from '../sizes.js';
import { duration, table } from '../table.js';
import type { MemoryResult, OptimizerName } from './steps.js';

const names: readonly OptimizerName[] = ['Adam', 'Adafactor'];
const steps = 3;

/** Runs the suite. @returns the results for `--json` */
export async function benchMemory(options: BenchOptions): Promise<unknown> {
  const results: Record<string, Record<string, MemoryResult>> = {};
  for (const size of options.sizes) results[size] = await measure(size, options.threads);
  return results;
}

async function measure(size: SizeName, threads: number): Promise<Record<string, MemoryResult>> {
  const found: Record<string, MemoryResult> = {};
  for (const name of names) {
    const result = await attempt(`memory, ${size}, ${name}`, () =>
      runOurs<MemoryResult>('memory/steps.js', [size, name, String(threads), String(steps)]),
    );
    if (result !== null) found[name] = result;
  }
  const { model, batchSize } = trainSizes[size];
  print(`\n## memory, ${size}: ${describeModel(model)}\n`);
  print(`${steps} steps in float32, ${batchSize} pairs of random ids in a batch`);
  print();
  const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(2)} GB`;
  const rows = Object.entries(found).map(([name, result]) => [
    name,
    gigabytes(result.peakRss),
    gigabytes(result.lasting),
    duration(result.seconds),
    duration(result.updateSeconds),
  ]);
  const head = ['optimizer', 'peak memory', 'weights and state', 'step', 'of it the update'];
  print(table(head, rows));
  return found;
}
