/** `--profile`: the time per op of our training step, and the best possible time. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runOurs } from './child.js';
import type { BenchOptions, TrainDType } from './options.js';
import type { ProfileResult } from './profileOurs.js';
import { attempt, print } from './report.js';
import { describeModel, trainSizes, type ModelSize, type SizeName } from './sizes.js';
import { duration, table } from './table.js';
import type { TrainJob } from './trainJob.js';
import type { Prepared } from './trainPrepare.js';
import { withWorkFolder } from './workFolder.js';

/** Ops below this share of the time are reported together. */
const smallestShare = 0.005;

/** Profiles every requested size and dtype. @returns the results for `--json` */
export async function profileTraining(options: BenchOptions): Promise<unknown> {
  const results: Record<string, unknown> = {};
  for (const name of options.sizes) {
    await withWorkFolder(options.work, async (folder) => {
      const size = trainSizes[name];
      const warmup = options.warmup ?? size.warmup;
      const steps = warmup + (options.steps ?? size.steps);
      const prepared = await attempt(`profile ${name}: making batches and weights`, () =>
        runOurs<Prepared>('trainPrepare.js', [name, options.data, String(steps), folder]),
      );
      if (prepared === null) return;
      const { weights, batches } = prepared;
      const { threads } = options;
      const rest = { dropout: 0.1, learningRate: 5e-4, seed: 1 };
      const job: TrainJob = { model: size.model, weights, batches, steps, threads, ...rest };
      const file = join(folder, `${name}.job.json`);
      await writeFile(file, JSON.stringify(job));
      for (const dtype of options.dtype) {
        const result = await attempt(`profile ${name}: ours ${dtype}`, () =>
          runOurs<ProfileResult>('profileOurs.js', [file, dtype, String(warmup)]),
        );
        if (result === null) continue;
        show(name, dtype, result, prepared.parameters);
        results[`${name} ${dtype}`] = result;
      }
    });
  }
  return results;
}

function show(name: SizeName, dtype: TrainDType, result: ProfileResult, parameters: number): void {
  const { model } = trainSizes[name];
  const { steps, times } = result;
  const step = result.seconds / steps;
  print(`\n## profile, size ${name}, ours ${dtype}\n`);
  print(`${describeModel(model)}; a step takes ${duration(step)}, mean of ${steps}`);
  print();
  const total = result.seconds * 1000;
  const large = times.filter(({ milliseconds }) => milliseconds >= smallestShare * total);
  const row = (op: string, calls: number | null, milliseconds: number): string[] => [
    op,
    calls === null ? '' : (calls / steps).toFixed(0),
    duration(milliseconds / 1000 / steps),
    `${((milliseconds / total) * 100).toFixed(1)} %`,
  ];
  const sum = (list: typeof times): number =>
    list.reduce((all, each) => all + each.milliseconds, 0);
  const rows = large.map(({ op, calls, milliseconds }) => row(op, calls, milliseconds));
  rows.push(row(`${times.length - large.length} other ops`, null, sum(times) - sum(large)));
  rows.push(row('outside of ops', null, Math.max(0, total - sum(times))));
  print(table(['op', 'calls', 'time per step', 'share'], rows));
  print(`\n${describeFloor(model, result, parameters)}`);
}

/** The time of the step if products and optimizer ran at the processor's best float32 rates. */
function describeFloor(model: ModelSize, result: ProfileResult, parameters: number): string {
  const { flopsPerSecond, bytesPerSecond, steps } = result;
  const products =
    productFlops(model, result.sourceTokens / steps, result.targetTokens / steps) / flopsPerSecond;
  // Adam reads weight, gradient and two moments, and writes all but the gradient.
  const adam = (7 * 4 * parameters) / bytesPerSecond;
  return (
    `Floor in float32: products ${duration(products)} at ${(flopsPerSecond / 1e9).toFixed(0)} ` +
    `GFLOP/s, dense Adam ${duration(adam)} at ${(bytesPerSecond / 1e9).toFixed(1)} GB/s; together ` +
    duration(products + adam)
  );
}

/** Multiplications and additions with all weight matrices for the tokens of a step, without padding. */
function productFlops(model: ModelSize, sourceTokens: number, targetTokens: number): number {
  const { vocabSize, N, dModel: d, dFf } = model;
  const source = N * (4 * d * d + 2 * d * dFf) + N * 2 * d * d;
  const target = N * (6 * d * d + 2 * d * dFf) + vocabSize * d;
  // Two per weight in the forward pass, four in the backward pass.
  return 6 * (sourceTokens * source + targetTokens * target);
}
