/** The first table of suite `train`: length-bucketed token batches, which each side makes itself. */
import { join } from 'node:path';
import { runOurs } from '../child.js';
import { bucketPeers, type BenchOptions } from '../options.js';
import { attempt, failures, print } from '../report.js';
import { comparedLosses, describeModel, trainSizes, type SizeName } from '../sizes.js';
import { gatherTiming, printEquality, printTiming } from '../trainReport.js';
import { participants, takeTurns, type Turn, type TurnOptions } from '../turns.js';
import type { BucketJob, BucketResult } from './bucketJob.js';
import type { PreparedBuckets } from './bucketPrepare.js';
import { gatherEpochs, printEpochs } from './epochReport.js';

/** @returns the results for `--json` */
export async function benchBuckets(
  name: SizeName,
  options: BenchOptions,
  folder: string,
): Promise<unknown> {
  const { model, corpus, buckets } = trainSizes[name];
  if (buckets === null) return null;
  const warmup = options.warmup ?? buckets.warmup;
  const steps = options.steps ?? buckets.steps;
  const rounds = options.rounds ?? buckets.rounds;
  const args = [name, options.data, String(options.epochs), folder];
  const prepared = await attempt(`train ${name}, buckets: making pairs and weights`, () =>
    runOurs<PreparedBuckets>('buckets/bucketPrepare.js', args),
  );
  if (prepared === null) return null;
  if (warmup + steps > prepared.batches) {
    throw new Error(
      `the corpus makes ${prepared.batches} batches of ${buckets.tokens} tokens, but --warmup and ` +
        `--steps ask for ${warmup + steps}`,
    );
  }

  print(`\n## train, size ${name}, length buckets of ${buckets.tokens} tokens\n`);
  print(
    `${describeModel(model)}, ${corpus}; ${(prepared.parameters / 1e6).toFixed(1)} M parameters; ` +
      `${prepared.batches} batches; ${(prepared.fill * 100).toFixed(0)} % of the positions are tokens`,
  );
  const job: BucketJob = {
    model,
    dropout: 0.1,
    learningRate: 5e-4,
    weights: prepared.weights,
    pairs: prepared.pairs,
    tokens: buckets.tokens,
    epochs: 1,
    steps: warmup + steps,
    validate: false,
    threads: options.threads,
    seed: 1,
  };
  const run = async (
    title: string,
    jobOfTurn: BucketJob,
    turnOptions: Partial<TurnOptions> = {},
    peers = bucketPeers,
  ): Promise<Turn<BucketResult>[]> => {
    const turns = await takeTurns<BucketResult>(jobOfTurn, participants(options, peers), {
      title: `train ${name}, buckets, ${title}`,
      file: join(folder, `${name}.buckets.job.json`),
      programs: { ours: 'buckets/bucketOurs.js', peer: 'buckets.py' },
      python: options.python,
      rounds,
      ...turnOptions,
    });
    checkBatches(name, turns);
    return turns;
  };
  const result: Record<string, unknown> = { ...prepared, warmup, steps, rounds };
  if (options.jobs.includes('timing')) {
    const timing = gatherTiming(await run('timing', job), warmup);
    printTiming(timing, { warmup, steps, rounds });
    result['timing'] = timing;
  }
  // One peer is enough: compiled-fp32 is the same model.
  const [peer] = bucketPeers.filter((known) => options.peers.includes(known));
  if (options.jobs.includes('equality') && peer !== undefined) {
    const equal = { ...job, dropout: 0, steps: comparedLosses };
    result['equality'] = printEquality(await run('equality', equal, { rounds: 1 }, [peer]));
  }
  if (options.jobs.includes('epochs')) {
    const { epochs } = options;
    const whole = { ...job, epochs, steps: null, validate: true };
    // An epoch takes many times as long as the steps of the other jobs.
    const seconds = options.limit * 6 * epochs;
    const turns = await run('epochs', whole, { rounds: options.rounds ?? 1, seconds });
    const gathered = gatherEpochs(turns);
    printEpochs(gathered, prepared);
    result['epochs'] = gathered;
  }
  return result;
}

/** Ratios mean nothing if the sides did not cut the same batches. */
function checkBatches(name: SizeName, turns: readonly Turn<BucketResult>[]): void {
  const [first, ...others] = turns;
  for (const other of others) {
    if (other.result.tokens.join() === first!.result.tokens.join()) continue;
    failures.push(
      `train ${name}, buckets: ${other.name} and ${first!.name} did not train on the same batches`,
    );
    return;
  }
}
