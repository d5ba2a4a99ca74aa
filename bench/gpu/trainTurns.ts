/** Parts `train …`: complete training steps of ours and of the peers, in turn on the same batches. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ourProgram, runOurs } from '../child.js';
import { comparedLosses } from '../sizes.js';
import type { TrainJob } from '../trainJob.js';
import { gatherTiming } from '../trainReport.js';
import type { Turn } from '../turns.js';
import { compareLosses, type LossComparison } from './equality.js';
import { batchCount, gpuSizes, warmupSteps, type GpuSizeName } from './gpuSizes.js';
import { Participant, type StepsResult } from './participant.js';
import { PartFailed } from './parts.js';
import type { Place } from './place.js';
import type { GpuTiming, TrainFindings } from './trainFindings.js';

const ours = ['ours float32', 'ours bfloat16'] as const;
type Name = (typeof ours)[number] | 'seed' | 'tuned' | 'compiled';

/** A participant with all its graphs compiled, and how long that took. */
interface Compiled {
  readonly participant: Participant;
  readonly seconds: number;
}

/** Turns of every participant, if time permits. */
const mostRounds = 3;

/** Seconds reserved for the turns, which compilation must not use up. */
const secondsForTurns = 25;

/** @throws PartFailed with the results so far if a participant failed or losses differ */
export async function trainTurns(
  size: GpuSizeName,
  place: Place,
  seconds: number,
): Promise<TrainFindings> {
  const turns = new Turns(size, place, seconds);
  try {
    const findings = await turns.run();
    const faults = [
      ...Object.entries(findings.failures).map(([name, reason]) => `${name}: ${reason}`),
      ...findings.equality.faults,
    ];
    if (faults.length > 0) throw new PartFailed(faults.join('; '), findings);
    return findings;
  } finally {
    turns.end();
  }
}

class Turns {
  readonly #size: GpuSizeName;
  readonly #place: Place;
  readonly #end: number;
  readonly #running = new Set<Participant>();
  readonly #failures: Record<string, string> = {};

  constructor(size: GpuSizeName, place: Place, seconds: number) {
    this.#size = size;
    this.#place = place;
    this.#end = performance.now() / 1000 + seconds;
  }

  async run(): Promise<TrainFindings> {
    const { model, about } = gpuSizes[this.#size];
    const weights = join(this.#place.tree, `${this.#size}.safetensors`);
    const { parameters } = await runOurs<{ parameters: number }>(
      'gpu/makeWeights.js',
      [this.#size, weights],
      { seconds: this.#left() },
    );
    const job = {
      model,
      learningRate: 5e-4,
      weights,
      batches: join(this.#place.tree, 'batches', `${this.#size}.batches.json`),
      steps: batchCount,
      threads: this.#place.tools.cores,
      device: this.#place.device,
      seed: 1,
    };
    const timed: TrainJob = { ...job, dropout: 0.1 };
    // Compilation takes longest; while losses are compared it disturbs no timing.
    const compiled = this.#compile(timed);
    const equality = await this.#compareLosses({ ...job, dropout: 0 });
    const timing = await this.#time(timed, compiled);
    return {
      size: this.#size,
      about,
      model,
      parameters,
      equality,
      ...timing,
      failures: this.#failures,
    };
  }

  /** Stops all processes that are still running. */
  end(): void {
    for (const participant of this.#running) participant.end();
  }

  #left(): number {
    return this.#end - performance.now() / 1000;
  }

  async #compareLosses(job: TrainJob): Promise<LossComparison> {
    const started = await Promise.all(
      [...ours, 'seed' as const, 'tuned' as const].map((name) => this.#start(name, job)),
    );
    const losses: Partial<Record<Name, readonly number[]>> = {};
    for (const participant of started) {
      if (participant === null) continue;
      const result = await this.#turn(participant, 0, comparedLosses);
      if (result !== null) losses[participant.name as Name] = result.losses;
      this.#stop(participant);
    }
    return compareLosses(losses);
  }

  /** Null if it failed. */
  async #compile(job: TrainJob): Promise<{ participant: Participant; seconds: number } | null> {
    const participant = await this.#start('compiled', job);
    if (participant === null) return null;
    const start = performance.now();
    const result = await this.#turn(participant, 0, batchCount, this.#left() - secondsForTurns);
    return result && { participant, seconds: (performance.now() - start) / 1000 };
  }

  async #time(
    job: TrainJob,
    compiling: Promise<Compiled | null>,
  ): Promise<Pick<TrainFindings, 'timing' | 'rounds' | 'compileSeconds'>> {
    const started = await Promise.all(
      [...ours, 'seed' as const, 'tuned' as const].map((name) => this.#start(name, job)),
    );
    const compiled = await compiling;
    const all = [...started, compiled?.participant ?? null].filter((each) => each !== null);
    // Kernels are chosen and loaded, and memory is allocated, at the first use of each shape.
    for (const participant of started)
      if (participant) await this.#turn(participant, 0, batchCount);
    const turns: Turn<StepsResult>[] = [];
    let rounds = 0;
    for (let longest = 0; rounds < mostRounds && this.#left() > 1.2 * longest; rounds++) {
      const start = performance.now();
      for (const participant of all) {
        if (!this.#running.has(participant)) continue;
        const result = await this.#turn(participant, 0, batchCount);
        const kind = participant.name.startsWith('ours') ? 'ours' : 'peer';
        if (result !== null) turns.push({ name: participant.name, kind, result });
      }
      longest = Math.max(longest, (performance.now() - start) / 1000);
    }
    const timing = gatherTiming(turns, warmupSteps).map((each): GpuTiming => {
      const own = turns.filter(({ name }) => name === each.name).map(({ result }) => result);
      const peaks = own.flatMap(({ peakDevice }) => peakDevice ?? []);
      return { ...each, peakDevice: peaks.length === 0 ? null : Math.max(...peaks) };
    });
    return { timing, rounds, compileSeconds: compiled?.seconds ?? null };
  }

  async #start(name: Name, job: TrainJob): Promise<Participant | null> {
    const file = join(this.#place.tree, `${this.#size} ${name} ${job.dropout}.job.json`);
    await writeFile(file, JSON.stringify(job));
    const [, dtype] = name.split(' ');
    const participant =
      dtype === undefined
        ? new Participant(name, this.#place.python, [
            ...[join(this.#place.repository, 'bench/gpu/participant.py')],
            ...['--job', file, '--variant', name],
          ])
        : new Participant(name, process.execPath, [
            ourProgram('gpu/participantOurs.js'),
            ...[file, dtype],
          ]);
    this.#running.add(participant);
    return this.#noteFailure(participant, async () => {
      await participant.ready(this.#left());
      return participant;
    });
  }

  #turn(
    participant: Participant,
    first: number,
    count: number,
    seconds = this.#left(),
  ): Promise<StepsResult | null> {
    return this.#noteFailure(participant, () => participant.steps({ first, count }, seconds));
  }

  /** Records a participant that fails; it gets no further turns. */
  async #noteFailure<T>(participant: Participant, run: () => Promise<T>): Promise<T | null> {
    try {
      return await run();
    } catch (error) {
      this.#failures[participant.name] = (error as Error).message;
      this.#stop(participant);
      return null;
    }
  }

  #stop(participant: Participant): void {
    participant.end();
    this.#running.delete(participant);
  }
}
