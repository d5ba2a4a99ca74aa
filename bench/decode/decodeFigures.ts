/** What the turns of suite `decode` say. */
import { median } from '../statistics.js';
import {
  isOurs,
  participantName,
  type DecodeParticipant,
  type DecodeTurn,
} from './decodeParticipants.js';

/** A participant's results of a case over all rounds. */
export interface DecodeFigure {
  readonly name: string;
  readonly participant: DecodeParticipant;
  /** Target tokens per second, by the median repetition. */
  readonly tokensPerSecond: number;
  /** Lowest and highest median of a round. */
  readonly range: readonly [number, number];
  /** By the shortest repetition: far above the median, other programs interfered. */
  readonly best: number;
  /** Seconds per step of a batch. */
  readonly step: number;
  /** Share of sentences whose tokens equal the reference's; null without a reference. */
  readonly equal: number | null;
  readonly peakRss: number;
  readonly version: string;
  /** Of all repetitions, round after round. */
  readonly seconds: readonly number[];
}

/** The participant that the tokens of others are compared with. */
export const referenceName = 'ctranslate2 float32';

/** The figures of a case for every participant that has it. */
export function gatherFigures(turns: readonly DecodeTurn[], name: string): DecodeFigure[] {
  const having = turns.filter(({ result }) => result.cases[name] !== undefined);
  const nameOf = ({ participant }: DecodeTurn): string => participantName(participant);
  const reference = having.find((turn) => nameOf(turn) === referenceName)?.result.cases[name]?.ids;
  return [...new Set(having.map(nameOf))].map((participant) => {
    const own = having.filter((turn) => nameOf(turn) === participant);
    const results = own.map(({ result }) => result.cases[name]!);
    const { ids } = results[0]!;
    const tokens = ids.reduce((sum, row) => sum + row.length, 0);
    const longest = Math.max(...ids.map((row) => row.length));
    const seconds = results.flatMap((result) => result.seconds);
    const rounds = results.map((result) => tokens / median(result.seconds));
    return {
      name: participant,
      participant: own[0]!.participant,
      tokensPerSecond: tokens / median(seconds),
      range: [Math.min(...rounds), Math.max(...rounds)],
      best: tokens / Math.min(...seconds),
      step: median(seconds) / longest,
      equal: reference === undefined ? null : equalShare(ids, reference),
      peakRss: Math.max(...own.map(({ result }) => result.peakRss)),
      version: own[0]!.result.version,
      seconds,
    };
  });
}

/** The share of sentences with the same tokens. */
export function equalShare(
  a: readonly (readonly number[])[],
  b: readonly (readonly number[])[],
): number {
  if (a.length !== b.length) throw new RangeError(`${a.length} sentences against ${b.length}`);
  return a.filter((row, index) => row.join() === b[index]!.join()).length / a.length;
}

/** Ours, which the others are compared with. */
export function ownFigures(figures: readonly DecodeFigure[]): DecodeFigure[] {
  return figures.filter(({ participant }) => isOurs(participant));
}
