/** Ids outside the vocabulary in a batch: which tensor, which pair, which place. */
import { describe, expect, it } from 'vitest';
import {
  evaluate,
  Generator,
  isPackable,
  makeBatch,
  makeModel,
  memory,
  PackedSequences,
  tensor,
  tokenLossSum,
  Trainer,
  type Batch,
  type ModelOptions,
  type PackedInput,
  type TokenPair,
} from 'torchformer';

const small: ModelOptions = { N: 1, dModel: 8, dFf: 8, h: 2, dropout: 0, maxLen: 8 };
const specialIds = { pad: 0, bos: 1, eos: 2 };
const good: TokenPair = { src: [1, 5, 6, 7, 2], tgt: [1, 3, 4, 5, 2], row: 4 };
const right: TokenPair = { src: [1, 5, 6, 2], tgt: [1, 3, 4, 2], row: 17 };

/** In pair 1, row 17: what is wrong, and what says so. */
const faults: [string, Partial<TokenPair>, string][] = [
  ['src', { src: [1, 5, 9, 2] }, 'batch.src holds the id 9 at [1, 2] (the pair of row 17)'],
  ['tgt', { tgt: [1, 3, 11, 2] }, 'batch.tgt holds the id 11 at [1, 2] (the pair of row 17)'],
  ['the last of tgtY', { tgt: [1, 3, 4, 12] }, 'batch.tgtY holds the id 12 at [1, 2] (the pair'],
];
const endings = { src: 'the table has 9 entries (0 to 8)', tgt: 'the table has 10 entries' };

class OwnGenerator extends Generator {
  override forward(vectors: Parameters<Generator['forward']>[0]) {
    return super.forward(vectors);
  }
}

describe.each<[string, (batch: Batch) => Batch, (generator: Generator) => Generator]>([
  ['packed', (batch) => batch, (generator) => generator],
  ['padded', (batch) => ({ ...batch }), (generator) => generator],
  ['packed, with a generator of its own', (batch) => batch, () => new OwnGenerator(8, 10)],
  ['padded, with a generator of its own', (batch) => ({ ...batch }), () => new OwnGenerator(8, 10)],
])('the loss of a batch that is %s', (_form, formed, generatorOf) => {
  it.each(faults)(
    'names the pair and the place of an id outside: %s',
    async (_, fault, message) => {
      const model = makeModel({ src: 9, tgt: 10 }, small);
      model.generator = generatorOf(model.generator);
      const batch = formed(makeBatch([good, { ...right, ...fault }], 0));
      const before = memory().tensors;
      for (const run of [
        () => tokenLossSum(model, batch, 0),
        () => evaluate(model, [batch], { pad: 0 }),
        () => new Trainer(model, { specialIds, reporter: null }).fit([batch], { epochs: 1 }),
      ]) {
        const failing = expect(async () => void (await run())).rejects;
        await failing.toThrow(RangeError);
        const text = await (async () => run())().then(String, (error: Error) => error.message);
        expect(text).toContain(message);
        expect(text).toContain(fault.src === undefined ? endings.tgt : endings.src);
        expect(text).toContain('use the tokenizer that the model was created for');
      }
      expect(memory().tensors).toBe(before);
    },
  );

  it('counts the padding of targets for nothing, whatever its id is', () => {
    const model = makeModel(10, small);
    model.generator = generatorOf(model.generator);
    const batch = formed(makeBatch([good, right], 0));
    expect(tokenLossSum(model, batch, 0).item()).toBeGreaterThan(0);
  });
});

describe('forwardPacked', () => {
  const input = (src: number[], tgt: number[]): PackedInput => ({
    src: tensor(src, { dtype: 'int64' }),
    tgt: tensor(tgt, { dtype: 'int64' }),
    srcSequences: new PackedSequences([2, 0, 3]),
    tgtSequences: new PackedSequences([1, 2, 2]),
  });

  it.each<[string, ModelOptions]>([
    ['tables of positions', {}],
    ['no positions', { positions: 'none' }],
  ])('names the sequence and the place of an id outside, with %s', (_, options) => {
    const model = makeModel({ src: 9, tgt: 10 }, { ...small, ...options });
    expect(isPackable(model)).toBe(true);
    expect(() => model.forwardPacked(input([1, 2, 3, 9, 5], [1, 2, 3, 4, 5]))).toThrow(
      'src holds the id 9 at [2, 1], but the table has 9 entries',
    );
    expect(() => model.forwardPacked(input([1, 2, 3, 4, 5], [1, 2, 10, 4, 5]))).toThrow(
      'tgt holds the id 10 at [1, 1], but the table has 10 entries',
    );
    expect(() => model.forwardPacked(input([-1, 2, 3, 4, 5], [1, 2, 3, 4, 5]))).toThrow(
      'src holds the id -1 at [0, 0]',
    );
    expect(model.forwardPacked(input([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])).shape).toEqual([5, 8]);
  });
});
