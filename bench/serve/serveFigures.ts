/** What the turns of suite `serve` say. */
import { median, quantile } from '../statistics.js';
import {
  servePhases,
  type DirectResult,
  type LoadResult,
  type ServedResult,
  type ServePhase,
} from './serveJob.js';

/** Both sides in one round. */
export interface ServeRound {
  readonly direct: DirectResult;
  readonly served: ServedResult;
}

/** Seconds of calls. */
export interface Latencies {
  readonly median: number;
  readonly p99: number;
  readonly max: number;
}

/** How fast the sentences were translated in one way. */
export interface RateFigure {
  /** Median of the rounds. */
  readonly sentencesPerSecond: number;
  /** Lowest and highest round. */
  readonly range: readonly [number, number];
  /** Of the sentences per second of one call with all of them. */
  readonly share: number;
  /** Null for one call with all sentences. */
  readonly latencies: Latencies | null;
  /** Processor time per sentence in seconds, without the client's, over all rounds. */
  readonly cpu: number;
  /** Number of sentences whose output is that of one call with all of them, in every round. */
  readonly equal: number;
}

/** Calls with one short sentence, while nothing else is translated. */
export interface LoneFigure extends Latencies {
  /** The 99th percentile over the median in process. */
  readonly ratio: number;
}

export interface ServeFigures {
  readonly sentences: number;
  /** One call of `translate` with all sentences. */
  readonly batch: RateFigure;
  /** Calls of `translate` with a sentence each, as many at a time as there are clients. */
  readonly calls: RateFigure;
  readonly served: RateFigure;
  readonly lone: { readonly direct: LoneFigure; readonly served: LoneFigure };
  /** Delay of the server's event loop in seconds, of the worst round. */
  readonly loop: Readonly<Record<ServePhase, { readonly p99: number; readonly max: number }>>;
  /** Seconds of the first request, for which the model is loaded, in the worst round. */
  readonly first: number;
  /** Processor time of the client per sentence in seconds, over all rounds. */
  readonly clientCpu: number;
  /** Resident memory of the server in bytes, of the largest round. */
  readonly memory: number;
  /** Reasons of failed calls, with their numbers. */
  readonly faults: Readonly<Record<string, number>>;
}

/** @throws RangeError without rounds */
export function gatherServing(rounds: readonly ServeRound[]): ServeFigures {
  const outputs = rounds[0]?.direct.outputs;
  if (outputs === undefined) throw new RangeError('gatherServing: no rounds');
  const batchRates = rounds.map(({ direct }) => outputs.length / median(direct.batch));
  const batchRate = median(batchRates);
  const figureOf = (
    rates: readonly number[],
    found: readonly (readonly (string | null)[])[],
  ): Pick<RateFigure, 'sentencesPerSecond' | 'range' | 'share' | 'equal'> => ({
    sentencesPerSecond: median(rates),
    range: [Math.min(...rates), Math.max(...rates)],
    share: median(rates) / batchRate,
    equal: outputs.filter((output, index) => found.every((each) => each[index] === output)).length,
  });
  const loadFigure = (loads: readonly LoadResult[], cpu: number): RateFigure => {
    const latencies = loads.flatMap((load) => load.latencies);
    return {
      ...figureOf(
        loads.map(({ sentencesPerSecond }) => sentencesPerSecond),
        loads.map((load) => load.outputs),
      ),
      latencies: latenciesOf(latencies),
      cpu: cpu / latencies.length,
    };
  };
  const directs = rounds.map(({ direct }) => direct);
  const serveds = rounds.map(({ served }) => served);
  const loads = serveds.map(({ load }) => load);
  const own = directs.flatMap(({ lone }) => lone);
  const loneOf = (seconds: readonly number[]): LoneFigure => {
    const latencies = latenciesOf(seconds);
    return { ...latencies, ratio: latencies.p99 / median(own) };
  };
  const batches = directs.flatMap(({ batch }) => batch).length;
  return {
    sentences: outputs.length,
    batch: {
      ...figureOf(
        batchRates,
        directs.map((direct) => direct.outputs),
      ),
      latencies: null,
      cpu: sumOf(directs.map(({ batchCpu }) => batchCpu)) / (batches * outputs.length),
    },
    calls: loadFigure(
      directs.map(({ load }) => load),
      sumOf(directs.map(({ loadCpu }) => loadCpu)),
    ),
    served: loadFigure(loads, sumOf(serveds.map(({ server }) => server.load.cpu))),
    lone: { direct: loneOf(own), served: loneOf(serveds.flatMap(({ lone }) => lone)) },
    loop: loopDelays(serveds),
    first: Math.max(...serveds.map(({ first }) => first)),
    clientCpu:
      sumOf(serveds.map(({ clientCpu }) => clientCpu)) /
      sumOf(loads.map(({ latencies }) => latencies.length)),
    memory: Math.max(...serveds.map(({ memory }) => memory)),
    faults: countedTogether([...loads, ...directs.map(({ load }) => load)]),
  };
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

function latenciesOf(seconds: readonly number[]): Latencies {
  return { median: median(seconds), p99: quantile(seconds, 0.99), max: quantile(seconds, 1) };
}

function loopDelays(serveds: readonly ServedResult[]): ServeFigures['loop'] {
  const worst = (phase: ServePhase) => ({
    p99: Math.max(...serveds.map(({ server }) => server[phase].loopP99)),
    max: Math.max(...serveds.map(({ server }) => server[phase].loopMax)),
  });
  const entries = servePhases.map((phase) => [phase, worst(phase)] as const);
  return Object.fromEntries(entries) as ServeFigures['loop'];
}

function countedTogether(loads: readonly LoadResult[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { faults } of loads) {
    for (const [reason, count] of Object.entries(faults)) {
      counts[reason] = (counts[reason] ?? 0) + count;
    }
  }
  return counts;
}
