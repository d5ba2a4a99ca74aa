/** The tables of suite `train`. */
import { print } from './report.js';
import { largestRelativeDifference, median } from './statistics.js';
import { duration, gigabytes, ratio, table } from './table.js';
import type { TrainResult } from './trainJob.js';
import type { Turn } from './turns.js';

/** A participant's results over all rounds. */
export interface Timing {
  readonly name: string;
  readonly kind: 'ours' | 'peer';
  /** Median of the timed steps. */
  readonly step: number;
  /** Shortest of the timed steps: shows how much other programs interfered. */
  readonly best: number;
  /** Median target tokens per second over the timed steps, not counting padding. */
  readonly tokensPerSecond: number;
  /** Lowest and highest median of a round. */
  readonly range: readonly [number, number];
  /** Largest of the rounds. */
  readonly peakRss: number;
  /** Of the last step. */
  readonly loss: number;
  readonly torch: string | null;
  readonly capability: string | null;
  /** All timed steps, round after round. */
  readonly seconds: readonly number[];
}

export function gatherTiming(turns: readonly Turn<TrainResult>[], warmup: number): Timing[] {
  return [...new Set(turns.map(({ name }) => name))].map((name) => {
    const own = turns.filter((turn) => turn.name === name);
    const [first] = own;
    const seconds = own.flatMap(({ result }) => result.seconds.slice(warmup));
    const rates = own.map(({ result }) =>
      result.seconds.slice(warmup).map((time, step) => result.tokens[warmup + step]! / time),
    );
    const rounds = rates.map(median);
    return {
      name,
      kind: first!.kind,
      step: median(seconds),
      best: Math.min(...seconds),
      tokensPerSecond: median(rates.flat()),
      range: [Math.min(...rounds), Math.max(...rounds)],
      peakRss: Math.max(...own.map(({ result }) => result.peakRss)),
      loss: own.at(-1)!.result.losses.at(-1)!,
      torch: first!.result.torch ?? null,
      capability: first!.result.capability ?? null,
      seconds,
    };
  });
}

export function printTiming(
  timings: readonly Timing[],
  { warmup, steps, rounds }: { warmup: number; steps: number; rounds: number },
): void {
  const ours = timings.filter(({ kind }) => kind === 'ours');
  print(
    `dropout 0.1; ${steps} steps timed after ${warmup}, ${rounds} rounds in turn; medians` +
      describePeers(timings),
  );
  print();
  const rows = timings.map((timing) => [
    timing.name,
    duration(timing.step),
    duration(timing.best),
    timing.tokensPerSecond.toFixed(0),
    timing.range.map((rate) => rate.toFixed(0)).join('..'),
    ...ours.map((own) =>
      own === timing ? '' : ratio(own.tokensPerSecond / timing.tokensPerSecond),
    ),
    gigabytes(timing.peakRss),
    timing.loss.toFixed(4),
  ]);
  const against = ours.map(({ name }) => `${name} is`);
  print(
    table(
      [
        'participant',
        'step',
        'shortest',
        'target tokens/s',
        'rounds',
        ...against,
        'peak memory',
        'last loss',
      ],
      rows,
    ),
  );
}

function describePeers(timings: readonly Timing[]): string {
  const peer = timings.find(({ torch }) => torch !== null);
  return peer === undefined ? '' : `; peers: PyTorch ${peer.torch} with ${peer.capability}`;
}

/** Losses with dropout 0, side by side with those of the first peer. */
export function printEquality(turns: readonly Turn<TrainResult>[]): unknown {
  const peer = turns.find(({ kind }) => kind === 'peer');
  const ours = turns.filter(({ kind }) => kind === 'ours');
  if (peer === undefined || ours.length === 0) return null;
  const differences = ours.map(({ result }) =>
    largestRelativeDifference(result.losses, peer.result.losses),
  );
  print('\nLosses with dropout 0, from the same weights on the same batches:\n');
  const rows = peer.result.losses.map((loss, step) => [
    String(step + 1),
    ...ours.map(({ result }) => result.losses[step]!.toFixed(6)),
    loss.toFixed(6),
  ]);
  rows.push(['largest relative difference', ...differences.map((d) => d.toExponential(1)), '']);
  print(table(['step', ...ours.map(({ name }) => name), peer.name], rows));
  return {
    losses: Object.fromEntries(turns.map(({ name, result }) => [name, result.losses])),
    largestRelativeDifference: Object.fromEntries(
      ours.map(({ name }, index) => [name, differences[index]]),
    ),
  };
}
