import { describe, expect, it } from 'vitest';
import { batches, evaluate, full, memory, noGrad, tidy, type Batch } from 'torchformer';
import { firstBatches, raggedPairs, tinyModel, tinyTask } from '../../support/tinyTranslation.js';

const { specialIds, dataset, tokenizer } = await tinyTask(raggedPairs);
const { pad } = specialIds;
const model = tinyModel(tokenizer.vocabSize);
// Some of its guesses are right: it likes "t" more than its random weights do.
const [t] = await tokenizer.encodeBatch(['t']);
noGrad(() => model.generator.proj.bias?.narrow(0, t![0]!, 1).fill_(1.5));

/** Targets that the model finds most probable, by its padded forward pass. */
function hitsOf(batch: Batch): number {
  return tidy(() => {
    const vectors = noGrad(() => model.forward(batch.src, batch.tgt, batch.srcMask, batch.tgtMask));
    const guesses = model.generator.forward(vectors).argmax(-1);
    const isTarget = batch.tgtY.ne(pad);
    return guesses.eq(batch.tgtY).logicalAnd(isTarget).sum().item();
  });
}

describe('evaluate', () => {
  it('has the perplexity exp(loss), and no accuracy unless asked for', async () => {
    const { loss, perplexity, accuracy } = await evaluate(model, batches(dataset), { pad });
    expect(perplexity).toBeCloseTo(Math.exp(loss), 10);
    expect(accuracy).toBeNull();
  });

  it('has the share of targets that are most probable, over all batches', async () => {
    const all = [...firstBatches({ specialIds, dataset, tokenizer }, 50, 7)];
    model.eval();
    const hits = all.reduce((sum, batch) => sum + hitsOf(batch), 0);
    const tokens = all.reduce((sum, batch) => sum + batch.ntokens, 0);
    const found = await evaluate(model, all, { pad, accuracy: true });
    expect(found.tokens).toBe(tokens);
    expect(hits).toBeGreaterThan(0);
    expect(hits).toBeLessThan(tokens);
    expect(found.accuracy).toBeCloseTo(hits / tokens, 12);
  });

  it('has the same loss with and without the accuracy', async () => {
    const without = await evaluate(model, batches(dataset, { batchSize: 8 }), { pad });
    const { accuracy, ...rest } = await evaluate(model, batches(dataset, { batchSize: 8 }), {
      pad,
      accuracy: true,
    });
    expect({ ...rest, accuracy: null }).toEqual(without);
    expect(accuracy).not.toBeNull();
  });

  it('counts alike for a model that needs padded batches, or whose generator has hooks', async () => {
    const packed = await evaluate(model, batches(dataset), { pad, accuracy: true });
    const removers = [model, model.generator].map((module) =>
      module.registerForwardHook(() => undefined),
    );
    const padded = await evaluate(model, batches(dataset), { pad, accuracy: true });
    for (const remover of removers) remover.remove();
    expect(padded.accuracy).toBeCloseTo(packed.accuracy!, 12);
    expect(padded.loss).toBeCloseTo(packed.loss, 5);
  });

  it('has no accuracy without a target', async () => {
    const [first] = firstBatches({ specialIds, dataset, tokenizer }, 2, 2);
    const { tgtY, ...rest } = first!;
    const empty = { ...rest, tgtY: full(tgtY.shape, pad, { dtype: 'int64' }), ntokens: 0 };
    const found = await evaluate(model, [empty], { pad, accuracy: true });
    expect(found).toMatchObject({ loss: NaN, perplexity: NaN, accuracy: NaN, tokens: 0 });
  });

  it('leaves no tensor behind', async () => {
    const source = batches(dataset, { batchSize: 16 });
    await evaluate(model, source, { pad, accuracy: true });
    const before = memory().tensors;
    await evaluate(model, source, { pad, accuracy: true });
    expect(memory().tensors).toBe(before);
  });
});
