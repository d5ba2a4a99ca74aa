/** Suite `train`: complete training steps of ours and the peers, in turn on the same batches. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runOurs, runPeer } from './child.js';
import type { BenchOptions, TrainDType, TrainPeer } from './options.js';
import { attempt, print } from './report.js';
import { comparedLosses, describeModel, trainSizes, type SizeName } from './sizes.js';
import { gatherTiming, printEquality, printTiming, type TimedRound } from './trainReport.js';
import type { TrainJob, TrainResult } from './trainJob.js';
import type { Prepared } from './trainPrepare.js';
import { withWorkFolder } from './workFolder.js';

/** A participant: ours with a dtype, or a peer. */
export type Participant =
  | { readonly kind: 'ours'; readonly dtype: TrainDType }
  | { readonly kind: 'peer'; readonly variant: TrainPeer };

export function participantName(participant: Participant): string {
  return participant.kind === 'ours' ? `ours ${participant.dtype}` : participant.variant;
}

/** Runs the suite for every requested size. @returns the results for `--json` */
export async function benchTrain(options: BenchOptions): Promise<unknown> {
  const results: Record<string, unknown> = {};
  for (const name of options.sizes) {
    results[name] = await withWorkFolder(options.work, (folder) =>
      benchSize(name, options, folder),
    );
  }
  return results;
}

async function benchSize(name: SizeName, options: BenchOptions, folder: string): Promise<unknown> {
  const size = trainSizes[name];
  const warmup = options.warmup ?? size.warmup;
  const steps = options.steps ?? size.steps;
  const rounds = options.rounds ?? size.rounds;
  const count = Math.max(warmup + steps, comparedLosses);
  const prepared = await attempt(`train ${name}: making batches and weights`, () =>
    runOurs<Prepared>('trainPrepare.js', [name, options.data, String(count), folder]),
  );
  if (prepared === null) return null;

  print(`\n## train, size ${name}\n`);
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
  const runner = new JobRunner(name, folder, options.python);
  const result: Record<string, unknown> = { ...prepared, warmup, steps, rounds };
  if (options.jobs.includes('timing')) {
    const turns = await takeTurns(runner, job, participants(options, options.peers), rounds);
    const timing = gatherTiming(turns, warmup);
    printTiming(timing, { warmup, steps, rounds });
    result['timing'] = timing;
  }
  // The losses are compared with the seed's code; the other peers would only repeat it.
  if (options.jobs.includes('equality') && options.peers.includes('seed')) {
    const equal = { ...job, dropout: 0, steps: comparedLosses };
    const turns = await takeTurns(runner, equal, participants(options, ['seed']), 1);
    result['equality'] = printEquality(turns);
  }
  return result;
}

function participants({ dtype }: BenchOptions, peers: readonly TrainPeer[]): Participant[] {
  return [
    ...dtype.map((each): Participant => ({ kind: 'ours', dtype: each })),
    ...peers.map((variant): Participant => ({ kind: 'peer', variant })),
  ];
}

/** Every participant once per round; one that failed gets no further turns. */
async function takeTurns(
  runner: JobRunner,
  job: TrainJob,
  all: readonly Participant[],
  rounds: number,
): Promise<TimedRound[]> {
  const turns: TimedRound[] = [];
  const failed = new Set<Participant>();
  for (let round = 1; round <= rounds; round++) {
    for (const participant of all) {
      if (failed.has(participant)) continue;
      const result = await runner.run(job, participant, `round ${round} of ${rounds}`);
      if (result === null) failed.add(participant);
      else turns.push({ name: participantName(participant), kind: participant.kind, result });
    }
  }
  return turns;
}

/** Starts participants on jobs. */
class JobRunner {
  readonly #size: string;
  readonly #folder: string;
  readonly #python: string;

  constructor(size: string, folder: string, python: string) {
    this.#size = size;
    this.#folder = folder;
    this.#python = python;
  }

  async run(job: TrainJob, participant: Participant, turn: string): Promise<TrainResult | null> {
    const file = join(this.#folder, `${this.#size}.job.json`);
    await writeFile(file, JSON.stringify(job, null, 2));
    const name = `train ${this.#size}, dropout ${job.dropout}, ${turn}: ${participantName(participant)}`;
    return attempt(name, () =>
      participant.kind === 'ours'
        ? runOurs<TrainResult>('trainOurs.js', [file, participant.dtype])
        : runPeer<TrainResult>(this.#python, 'train.py', [
            '--job',
            file,
            '--variant',
            participant.variant,
          ]),
    );
  }
}
