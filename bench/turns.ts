/** The participants of suite `train`, and their turns. */
import { writeFile } from 'node:fs/promises';
import { runOurs, runPeer, type ChildOptions } from './child.js';
import type { BenchOptions, TrainDType, TrainPeer } from './options.js';
import { attempt } from './report.js';
import type { TrainResult } from './trainJob.js';

/** A participant: ours with a dtype, or a peer. */
export type Participant =
  | { readonly kind: 'ours'; readonly dtype: TrainDType }
  | { readonly kind: 'peer'; readonly variant: TrainPeer };

/** One turn of one participant. */
export interface Turn<Result extends TrainResult> {
  readonly name: string;
  readonly kind: 'ours' | 'peer';
  readonly result: Result;
}

/** The programs of the participants: of this folder and of `bench/peers`. */
export interface Programs {
  readonly ours: string;
  readonly peer: string;
}

/** Ours with each of the dtypes, and those of the requested peers that take part. */
export function participants(
  { dtype, peers }: BenchOptions,
  known: readonly TrainPeer[],
): Participant[] {
  return [
    ...dtype.map((each): Participant => ({ kind: 'ours', dtype: each })),
    ...peers
      .filter((variant) => known.includes(variant))
      .map((variant): Participant => ({ kind: 'peer', variant })),
  ];
}

/** How a job is run. */
export interface TurnOptions extends ChildOptions {
  /** What the turns are called in messages. */
  readonly title: string;
  /** Where the job is written for the participants. */
  readonly file: string;
  readonly programs: Programs;
  readonly python: string;
  readonly rounds: number;
}

/** Runs every participant once per round; one that failed gets no further turns. */
export async function takeTurns<Result extends TrainResult>(
  job: object,
  all: readonly Participant[],
  { title, file, programs, python, rounds, ...limits }: TurnOptions,
): Promise<Turn<Result>[]> {
  await writeFile(file, JSON.stringify(job, null, 2));
  const turns: Turn<Result>[] = [];
  const failed = new Set<Participant>();
  for (let round = 1; round <= rounds; round++) {
    for (const participant of all) {
      if (failed.has(participant)) continue;
      const name = participantName(participant);
      const result = await attempt(`${title}, round ${round} of ${rounds}: ${name}`, () =>
        participant.kind === 'ours'
          ? runOurs<Result>(programs.ours, [file, participant.dtype], limits)
          : runPeer<Result>(
              python,
              programs.peer,
              ['--job', file, '--variant', participant.variant],
              limits,
            ),
      );
      if (result === null) failed.add(participant);
      else turns.push({ name, kind: participant.kind, result });
    }
  }
  return turns;
}

function participantName(participant: Participant): string {
  return participant.kind === 'ours' ? `ours ${participant.dtype}` : participant.variant;
}
