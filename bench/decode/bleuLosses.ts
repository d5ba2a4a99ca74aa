/** What translations lose by a low precision. */
import type { DecodeFigure } from './decodeFigures.js';
import { participantName } from './decodeParticipants.js';

export interface BleuLoss {
  /** The participant. */
  readonly name: string;
  readonly bleu: number;
  /** Less than the same decoder in float32; null for that one, and without it. */
  readonly lost: number | null;
}

/** @param scores by the names of participants */
export function bleuLosses(
  figures: readonly Pick<DecodeFigure, 'name' | 'participant'>[],
  scores: Readonly<Record<string, number>>,
): BleuLoss[] {
  return figures.flatMap(({ name, participant }) => {
    const bleu = scores[name];
    if (bleu === undefined) return [];
    const full = scores[participantName({ ...participant, precision: 'float32' })];
    const isFull = participant.precision === 'float32';
    return [{ name, bleu, lost: isFull || full === undefined ? null : full - bleu }];
  });
}
