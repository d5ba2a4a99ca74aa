/** Suite `train`: complete training steps of ours and the peers, in turn on the same batches. */
import { join } from 'node:path';
import { benchBuckets } from './buckets/benchBuckets.js';
import { runOurs } from './child.js';
import type { BenchOptions, TrainPeer } from './options.js';
import { attempt, print } from './report.js';
import { comparedLosses, describeModel, trainSizes, type SizeName } from './sizes.js';
import type { TrainJob } from './trainJob.js';
import type { Prepared } from './trainPrepare.js';
import { gatherTiming, printEquality, printTiming } from './trainReport.js';
import { participants, takeTurns, type TurnOptions } from './turns.js';
import { withWorkFolder } from './workFolder.js';

/** The peers on padded batches. */
const paddedPeers: readonly TrainPeer[] = ['seed', 'tuned', 'tuned-fp32'];

/** Runs the suite for every requested size. @returns the results for `--json` */
export async function benchTrain(options: BenchOptions): Promise<unknown> {
  const results: Record<string, Record<string, unknown>> = {};
  // All tables of buckets come first: they are the comparison that counts.
  for (const table of options.tables) {
    const bench = table === 'buckets' ? benchBuckets : benchPadded;
    for (const name of options.sizes) {
      const result = await withWorkFolder(options.work, (folder) => bench(name, options, folder));
      results[name] = { ...results[name], [table]: result };
    }
  }
  return results;
}

/** The table of padded batches, against the seed's own loop. */
async function benchPadded(
  name: SizeName,
  options: BenchOptions,
  folder: string,
): Promise<unknown> {
  if (!options.jobs.some((job) => job !== 'epochs')) return null;
  const size = trainSizes[name];
  const warmup = options.warmup ?? size.warmup;
  const steps = options.steps ?? size.steps;
  const rounds = options.rounds ?? size.rounds;
  const count = Math.max(warmup + steps, comparedLosses);
  const prepared = await attempt(`train ${name}: making batches and weights`, () =>
    runOurs<Prepared>('trainPrepare.js', [name, options.data, String(count), folder]),
  );
  if (prepared === null) return null;

  print(`\n## train, size ${name}, padded batches\n`);
  print(
    `${describeModel(size.model)}, batch ${size.batchSize}, ${size.corpus}; ` +
      `${(prepared.parameters / 1e6).toFixed(1)} M parameters; ` +
      `${(prepared.fill * 100).toFixed(0)} % of the target positions are tokens`,
  );
  const job: TrainJob = {
    model: size.model,
    dropout: 0.1,
    learningRate: 5e-4,
    weights: prepared.weights,
    batches: prepared.batches,
    steps: warmup + steps,
    threads: options.threads,
    seed: 1,
  };
  const turns: Omit<TurnOptions, 'title'> = {
    file: join(folder, `${name}.job.json`),
    programs: { ours: 'trainOurs.js', peer: 'train.py' },
    python: options.python,
    rounds,
  };
  const result: Record<string, unknown> = { ...prepared, warmup, steps, rounds };
  if (options.jobs.includes('timing')) {
    const timed = await takeTurns(job, participants(options, paddedPeers), {
      ...turns,
      title: `train ${name}, padded, dropout 0.1`,
    });
    const timing = gatherTiming(timed, warmup);
    printTiming(timing, { warmup, steps, rounds });
    result['timing'] = timing;
  }
  // The losses are compared with the seed's code; the other peers would only repeat it.
  if (options.jobs.includes('equality') && options.peers.includes('seed')) {
    const equal = { ...job, dropout: 0, steps: comparedLosses };
    const compared = await takeTurns(equal, participants(options, ['seed']), {
      ...turns,
      title: `train ${name}, padded, dropout 0`,
      rounds: 1,
    });
    result['equality'] = printEquality(compared);
  }
  return result;
}
