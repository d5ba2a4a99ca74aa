/** Greedy answers of a model trained in PyTorch to reverse its source. */
import { beforeAll, describe, expect, it } from 'vitest';
import { greedy, padSequences, paddingMask } from 'torchformer';
import type { Transformer } from 'torchformer';
import { buildModel } from './build.js';
import { index, readFixture } from './fixtures.js';

const { options, pad, bos, eos, batches } = index.greedy;

let model: Transformer;
beforeAll(async () => {
  model = buildModel((name) => options[name] as number, 0);
  model.loadStateDict(await readFixture('greedy'));
  model.eval();
});

describe('greedy', () => {
  it.each(batches)(
    'answers $sources within $maxLen tokens as PyTorch does',
    async ({ sources, maxLen, answers }) => {
      const src = padSequences(sources, pad);
      const found = await greedy(model, src, paddingMask(src, pad), {
        bos,
        eos,
        pad,
        maxLength: maxLen,
      });
      expect(found.map(({ ids }) => ids)).toEqual(answers);
    },
  );

  it('answers each sentence alone as it does in a padded batch', async () => {
    for (const [source, answer] of batches.flatMap(({ sources, answers, maxLen }) =>
      sources.map((row, number) => [row, answers[number], maxLen] as const),
    )) {
      const src = padSequences([source], pad);
      const [found] = await greedy(model, src, paddingMask(src, pad), {
        bos,
        eos,
        pad,
        maxLength: 8,
      });
      expect(found?.ids.slice(0, answer?.length)).toEqual(answer);
    }
  });
});
