/** Suite decode: the figures of its turns, what bounds them, and what a low precision loses. */
import { describe, expect, it } from 'vitest';
import { bleuLosses } from '../../../bench/decode/bleuLosses.js';
import { equalShare, gatherFigures } from '../../../bench/decode/decodeFigures.js';
import { decodeModels, sourceLength, targetLength } from '../../../bench/decode/decodeModels.js';
import { decoderNames, precisions } from '../../../bench/decode/decoders.js';
import {
  canDecode,
  decodeParticipants,
  participantName,
  type DecodeParticipant,
  type DecodeTurn,
} from '../../../bench/decode/decodeParticipants.js';
import { percent } from '../../../bench/decode/decodeTables.js';
import { encoderPass, stepPass, tokenLimit } from '../../../bench/decode/limits.js';

function turn(
  participant: DecodeParticipant,
  seconds: readonly number[],
  ids: readonly (readonly number[])[],
  peakRss = 1,
): DecodeTurn {
  const cases = { 'greedy-1': { seconds, ids } };
  return { participant, result: { cases, version: 'test', peakRss } };
}

describe('the participants', () => {
  it('are every decoder in every precision that it has', () => {
    const all = decodeParticipants({ decoders: decoderNames, precisions });
    expect(all.map(participantName)).toEqual([
      'ours float32',
      'ours bfloat16',
      'ours int8',
      'recompute float32',
      'ctranslate2 float32',
      'ctranslate2 int8',
      'pytorch-cached float32',
      'pytorch-cached bfloat16',
    ]);
  });

  it('are those that were asked for', () => {
    const some = decodeParticipants({ decoders: ['ours', 'recompute'], precisions: ['int8'] });
    expect(some.map(participantName)).toEqual(['ours int8']);
  });

  it('search with a beam, except the one that computes every prefix again', () => {
    const beam = { name: 'beam-1', beam: 4, batch: 1, sentences: 1, maxLength: 5 };
    const able = decoderNames.filter((decoder) =>
      canDecode({ decoder, precision: 'float32' }, beam),
    );
    expect(able).toEqual(['ours', 'ctranslate2', 'pytorch-cached']);
  });
});

describe('the figures of a case', () => {
  const peer = { decoder: 'ctranslate2', precision: 'float32' } as const;
  const ours = { decoder: 'ours', precision: 'int8' } as const;
  // Six tokens; the longer sentence takes four steps.
  const targets = [
    [5, 6, 7, 8],
    [9, 5],
  ];

  it('are medians over all rounds, and the range of the medians of rounds', () => {
    const figures = gatherFigures(
      [turn(ours, [1, 2, 3], targets, 10), turn(ours, [6], targets, 20)],
      'greedy-1',
    );
    expect(figures).toMatchObject([
      // The median of 1, 2, 3 and 6 seconds is 2.5.
      { name: 'ours int8', tokensPerSecond: 2.4, range: [1, 3], best: 6, step: 0.625, peakRss: 20 },
    ]);
  });

  it('compare the tokens with those of CTranslate2 in float32', () => {
    const other = [[5, 6, 7, 8], [9]];
    const figures = gatherFigures([turn(peer, [1], targets), turn(ours, [1], other)], 'greedy-1');
    expect(figures.map(({ name, equal }) => [name, equal])).toEqual([
      ['ctranslate2 float32', 1],
      ['ours int8', 0.5],
    ]);
    expect(gatherFigures([turn(ours, [1], other)], 'greedy-1')[0]?.equal).toBeNull();
  });

  it('leave out participants that did not have the case', () => {
    expect(gatherFigures([turn(peer, [1], targets)], 'beam-1')).toEqual([]);
  });
});

describe('the share of equal sentences', () => {
  it('counts a sentence only if all its tokens are equal', () => {
    expect(equalShare([[1, 2], [3], [], [12]], [[1, 2], [3, 4], [], [1, 2]])).toBe(0.5);
    expect(() => equalShare([[1]], [])).toThrow('1 sentences against 0');
  });

  it('is shown without hiding a single difference of a thousand', () => {
    expect([1, 0.999, null].map(percent)).toEqual(['100 %', '99.9 %', '-']);
  });
});

describe('the limit of decoding', () => {
  const tiny = { vocabSize: 10, N: 1, dModel: 2, dFf: 4, h: 1 };

  it('has the weights of all layers', () => {
    // Attention: four projections of 2 x 2; feed-forward: 2 x 4 twice; source keys and values: 2 x 2 each.
    expect(encoderPass(tiny, 3).weights).toBe(16 + 16 + 8);
    // Six projections, feed-forward, generator.
    expect(stepPass(tiny, 0, 3).weights).toBe(24 + 16 + 20);
    // Two operations a weight; scores and sums over one target and three source positions.
    expect(stepPass(tiny, 0, 3).operations).toBe(120 + 4 * 2 * 4);
  });

  it('is the time to read the weights if reading is slow', () => {
    const rates = { bytesPerSecond: 1, peak: 1e12 };
    const bytes = (precision: number): number =>
      precision * (encoderPass(tiny, sourceLength).weights + targetLength * 60);
    const one = { beam: 1, batch: 1 };
    expect(tokenLimit(tiny, one, 'float32', rates)).toBeCloseTo(targetLength / bytes(4), 12);
    expect(tokenLimit(tiny, one, 'bfloat16', rates)).toBeCloseTo(targetLength / bytes(2), 12);
    // Reading once serves the whole batch, and all hypotheses.
    const many = { beam: 4, batch: 32 };
    expect(tokenLimit(tiny, many, 'int8', rates)).toBeCloseTo((32 * targetLength) / bytes(1), 12);
  });

  it('is the time of the operations if there are many rows, in float32 alone', () => {
    const rates = { bytesPerSecond: 1e15, peak: 1e9 };
    const greedy = tokenLimit(decodeModels.base, { beam: 1, batch: 32 }, 'float32', rates);
    const beam = tokenLimit(decodeModels.base, { beam: 4, batch: 32 }, 'float32', rates);
    expect(greedy / beam).toBeGreaterThan(2);
    expect(greedy / beam).toBeLessThan(4);
    const low = tokenLimit(decodeModels.base, { beam: 4, batch: 32 }, 'int8', rates);
    expect(low).toBeGreaterThan(1e6);
    // Without a known peak, reading alone counts.
    const unknown = { ...rates, peak: null };
    expect(tokenLimit(decodeModels.base, { beam: 4, batch: 32 }, 'float32', unknown)).toBe(low / 4);
  });
});

describe('what a low precision loses', () => {
  it('is the difference from the same decoder in float32', () => {
    const figures = [
      { decoder: 'ours', precision: 'float32' },
      { decoder: 'ours', precision: 'int8' },
      { decoder: 'ctranslate2', precision: 'int8' },
    ] as const;
    const named = figures.map((participant) => ({
      name: participantName(participant),
      participant,
    }));
    const scores = { 'ours float32': 30, 'ours int8': 29.5, 'ctranslate2 int8': 31 };
    expect(bleuLosses(named, scores)).toEqual([
      { name: 'ours float32', bleu: 30, lost: null },
      { name: 'ours int8', bleu: 29.5, lost: 0.5 },
      { name: 'ctranslate2 int8', bleu: 31, lost: null },
    ]);
  });
});
