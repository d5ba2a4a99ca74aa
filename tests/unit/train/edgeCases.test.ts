/**
 * Inputs at the edges, on the fast paths of training (packed batches, the loss in one op, Adam that
 * visits rows in use) and beside the plain ones: padded batches and dense Adam.
 */
import { availableParallelism } from 'node:os';
import { afterEach, describe, expect, it } from 'vitest';
import {
  Adam,
  Embedding,
  getNumThreads,
  makeBatch,
  makeModel,
  manualSeed,
  setNumThreads,
  tokenLossSum,
  Trainer,
  type Batch,
  type ModelOptions,
  type TokenPair,
  type Transformer,
} from 'torchformer';

const threads = getNumThreads();
afterEach(() => setNumThreads(threads));

const specialIds = { pad: 0, bos: 1, eos: 2 };
const small: ModelOptions = {
  N: 1,
  dModel: 16,
  dFf: 32,
  h: 2,
  dropout: 0,
  attentionDropout: 0,
  maxLen: 8,
};

function smallModel(vocabSize = 12, options: ModelOptions = {}): Transformer {
  manualSeed(1);
  return makeModel(vocabSize, { ...small, ...options });
}

const pair = (src: number[], tgt: number[]): TokenPair => ({ src, tgt, row: 1 });
const usual = [pair([1, 5, 6, 2], [1, 7, 8, 2]), pair([1, 4, 2], [1, 9, 2])];

/** Only the padded path is left for such a batch. */
function padded(pairs: readonly TokenPair[]): Batch {
  const batch = makeBatch(pairs, specialIds.pad);
  delete (batch as { packed?: unknown }).packed;
  return batch;
}

/** The losses of some epochs, a batch for each list of pairs. */
async function losses(
  model: Transformer,
  batches: readonly (readonly TokenPair[])[],
  way: 'fast' | 'plain' = 'fast',
): Promise<number[]> {
  const optimizer = way === 'plain' ? { optimizer: new Adam(model.parameters()) } : {};
  const trainer = new Trainer(model, {
    specialIds,
    reporter: null,
    learningRate: 1e-2,
    ...optimizer,
  });
  const load = () =>
    batches.map((pairs) => (way === 'fast' ? makeBatch(pairs, specialIds.pad) : padded(pairs)));
  await trainer.fit(load, { epochs: 4 });
  return trainer.history.steps.map(({ loss }) => loss);
}

/** Both ways learn the same. */
async function expectEqualLearning(
  batches: readonly (readonly TokenPair[])[],
  vocabSize?: number,
  options?: ModelOptions,
): Promise<void> {
  for (const pairs of batches) {
    expect(makeBatch(pairs, specialIds.pad).packed, 'the fast way is taken').toBeDefined();
  }
  const fast = await losses(smallModel(vocabSize, options), batches);
  const plain = await losses(smallModel(vocabSize, options), batches, 'plain');
  expect(fast).toHaveLength(4 * batches.length);
  fast.forEach((loss, step) => {
    expect(Math.abs(loss - (plain[step] as number)), `step ${step}`).toBeLessThan(1e-5);
  });
}

function weights(model: Transformer): number[][] {
  return model.parameters().map((parameter) => [...parameter.data()].map(Number));
}

describe('a batch without target tokens', () => {
  const empty = [pair([1, 5, 2], [1, 0, 0])];

  it('has the loss 0 and zero gradients', () => {
    const model = smallModel();
    const batch = makeBatch(empty, specialIds.pad);
    expect(batch.ntokens).toBe(0);
    const loss = tokenLossSum(model, batch, specialIds.pad);
    loss.backward();
    expect(loss.item()).toBe(0);
    const largest = model.parameters().map(({ grad }) => grad?.abs().max().item() ?? 0);
    expect(Math.max(...largest)).toBe(0);
  });

  it('alone changes no weight', async () => {
    const model = smallModel();
    const before = weights(model);
    await losses(model, [empty]);
    expect(weights(model)).toEqual(before);
  });

  it('between others changes nothing of what they teach', async () => {
    const [with_, without] = [smallModel(), smallModel()];
    await losses(with_, [usual, empty]);
    await losses(without, [usual]);
    expect(weights(with_)).toEqual(weights(without));
  });
});

describe('training the fast way learns as the plain way does from', () => {
  it('a single sentence of one token', async () => {
    await expectEqualLearning([[pair([5], [1, 2])]]);
  });

  it('sequences as long as the table of positions', async () => {
    const longest = pair([1, 3, 4, 5, 6, 7, 8, 2], [1, 3, 4, 5, 6, 7, 8, 9, 2]);
    await expectEqualLearning([[longest, ...usual]]);
    await expect(losses(smallModel(12, { maxLen: 7 }), [[longest]])).rejects.toThrow(
      /8 positions, but the table has 7/,
    );
  });

  it('a vocabulary of 2, with a loop of one’s own: Trainer wants three different ids', async () => {
    const pairs = [pair([1, 1], [1, 1, 1]), pair([1], [1, 1])];
    await expect(losses(smallModel(2), [pairs])).rejects.toThrow(/eos must be an id from 0 to 1/);
    const lossesOf = (batch: Batch, sparseGradient: boolean): number[] => {
      const model = smallModel(2);
      const embeddings = model.modules().filter((module) => module instanceof Embedding);
      expect(embeddings).toHaveLength(2);
      for (const embedding of embeddings) embedding.sparseGradient = sparseGradient;
      const adam = new Adam(model.parameters(), { lr: 1e-2 });
      return Array.from({ length: 4 }, () => {
        adam.zeroGrad();
        const loss = tokenLossSum(model, batch, specialIds.pad, { scale: 1 / batch.ntokens });
        loss.backward();
        adam.step();
        return loss.item();
      });
    };
    const fast = lossesOf(makeBatch(pairs, specialIds.pad), true);
    const plain = lossesOf(padded(pairs), false);
    expect(fast[3]).toBeLessThan(fast[0] as number);
    fast.forEach((loss, step) => {
      expect(Math.abs(loss - (plain[step] as number))).toBeLessThan(1e-5);
    });
  });

  it.each([
    [3, 1, 5],
    [10, 5, 7],
    [34, 2, 33],
    [49, 7, 1],
  ])('widths that no vector divides: d %i, h %i, ff %i', async (dModel, h, dFf) => {
    await expectEqualLearning([usual, [...usual].reverse()], 13, { dModel, h, dFf });
  });

  it.each([
    ['1 thread', 1],
    ['more threads than cores', 4 * availableParallelism() + 1],
  ])('with %s', async (_, count) => {
    setNumThreads(count);
    await expectEqualLearning([usual]);
    expect(getNumThreads()).toBe(count);
  });

  it('any number of threads, each with the same losses', async () => {
    const learned: number[][] = [];
    for (const count of [1, 2, 4 * availableParallelism() + 1]) {
      setNumThreads(count);
      learned.push(await losses(smallModel(40, { dModel: 34 }), [usual]));
    }
    for (const others of learned.slice(1)) {
      others.forEach((loss, step) => {
        expect(Math.abs(loss - (learned[0]?.[step] as number))).toBeLessThan(1e-5);
      });
    }
  });
});
