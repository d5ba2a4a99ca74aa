/** Weights and probabilities that are NaN or infinite: an error, never a translation. */
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  greedy,
  memory,
  noGrad,
  paddingMask,
  tensor,
  Translator,
  type Decoded,
  type Transformer,
} from 'torchformer';
import { tinyModel, tinyTask, type TinyTask } from '../../support/tinyTranslation.js';

const ids = { pad: 0, bos: 1, eos: 2 };
const vocabSize = 20;
let model: Transformer;
const fresh = () => (model = tinyModel(vocabSize).eval());
afterEach(() => model.dispose());

async function decode(
  of: Transformer,
  rows: number[][] = [[1, 5, 6, 2]],
  maxLength = 4,
): Promise<Decoded[]> {
  const src = tensor(rows, { dtype: 'int64' });
  const mask = paddingMask(src, 0);
  try {
    return await greedy(of, src, mask, { ...ids, maxLength });
  } finally {
    src.dispose();
    mask.dispose();
  }
}

const spoil = (of: Transformer, name: string, value: number) =>
  noGrad(() => of.getParameter(name).fill_(value));

const names = tinyModel(vocabSize)
  .namedParameters()
  .map(([name]) => name);

describe('greedy refuses', () => {
  test.each(names.flatMap((name) => [NaN, Infinity].map((value) => [name, value] as const)))(
    '%s full of %d, and names it',
    async (name, value) => {
      spoil(fresh(), name, value);
      await expect(decode(model)).rejects.toMatchObject({
        code: 'ERR_NON_FINITE',
        message:
          'greedy: row 0 of src: the probabilities of output token 1 are NaN or infinite; ' +
          `the model's "${name}" contains NaN or infinite values: use a model saved before that happened`,
      });
    },
  );

  test('one NaN in the row of one id', async () => {
    fresh();
    noGrad(() => model.generator.proj.weight.select(0, 7).narrow(0, 3, 1).fill_(NaN));
    await expect(decode(model)).rejects.toMatchObject({ code: 'ERR_NON_FINITE' });
  });

  test('the rows that meet a spoilt vector, and no others', async () => {
    fresh();
    const expected = await decode(model, [[1, 5, 6, 2]]);
    noGrad(() => model.getParameter('src_embed.0.embedding.weight').select(0, 9).fill_(NaN));
    expect(await decode(model, [[1, 5, 6, 2]])).toEqual(expected);
    const rows = [
      [1, 5, 6, 2],
      [1, 9, 6, 2],
    ];
    await expect(decode(model, rows)).rejects.toThrow('greedy: row 1 of src: the probabilities of');
  });

  test('numbers beyond the range of float16, with what helps', async () => {
    fresh();
    noGrad(() => model.generator.proj.weight.mul_(1e5));
    expect(await decode(model)).toHaveLength(1);
    model.half();
    await expect(decode(model)).rejects.toMatchObject({
      code: 'ERR_NON_FINITE',
      message: expect.stringMatching(
        /all weights are finite, so values exceeded the range of float16: use model\.float\(\)/,
      ) as string,
    });
  });

  test('large weights whose products overflow', async () => {
    fresh();
    noGrad(() => model.generator.proj.weight.fill_(3e38));
    await expect(decode(model)).rejects.toThrow(
      /all weights are finite, so values overflowed in the computation/,
    );
  });

  test('a vocabulary of which nothing may be written', async () => {
    fresh();
    const { bias } = model.generator.proj;
    noGrad(() => {
      bias?.fill_(-Infinity);
      bias?.select(0, ids.pad).fill_(0);
    });
    await expect(decode(model)).rejects.toMatchObject({ code: 'ERR_NON_FINITE' });
  });
});

test('a bias of minus infinity forbids an id, which is no fault', async () => {
  fresh();
  const [before] = await decode(model);
  const banned = before?.ids[0] as number;
  noGrad(() => model.generator.proj.bias?.select(0, banned).fill_(-Infinity));
  const [after] = await decode(model);
  expect(after?.ids).not.toContain(banned);
});

test('a refused search leaves no tensor behind', async () => {
  spoil(fresh(), 'generator.proj.bias', NaN);
  const before = memory().tensors;
  await expect(decode(model)).rejects.toThrow();
  expect(memory().tensors).toBe(before);
});

describe('Translator', () => {
  let task: TinyTask;
  beforeAll(async () => {
    task = await tinyTask();
  });

  test('names the text by its place in what it was given', async () => {
    model = tinyModel(task.tokenizer.vocabSize).eval();
    const { tokenizer, specialIds } = task;
    const letter = tokenizer.idOf('x') as number;
    noGrad(() => model.getParameter('src_embed.0.embedding.weight').select(0, letter).fill_(NaN));
    const translator = new Translator(model, { tokenizer, specialIds });
    await expect(translator.translate(['forty four', 'sixty', 'two'])).rejects.toMatchObject({
      code: 'ERR_NON_FINITE',
      message: expect.stringMatching(
        /^Translator\.translate: texts\[1\]: the probabilities of output token 1 are NaN/,
      ) as string,
    });
    expect(await translator.translate(['forty four'])).toHaveLength(1);
  });
});
