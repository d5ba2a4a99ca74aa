import { beforeAll, describe, expect, test } from 'vitest';
import {
  greedy,
  makeModel,
  Module,
  paddingMask,
  tensor,
  TextTooLongError,
  tidy,
  Translator,
  zeros,
  type Decoded,
  type Tensor,
  type Transformer,
} from 'torchformer';
import { tinyModel, tinyTask, type TinyTask } from '../../support/tinyTranslation.js';

const ids = { pad: 0, bos: 1, eos: 2 };

/** Next-token probabilities by last token, for the ids pad, bos, eos, A 3, B 4, C 5. */
const toyTable = [
  [1, 0, 0, 0, 0, 0],
  [0, 0, 0, 0.55, 0.45, 0],
  [1, 0, 0, 0, 0, 0],
  [0, 0, 0.4, 0, 0, 0.6],
  [0, 0, 0.9, 0, 0, 0.1],
  [0, 0, 0.5, 0.3, 0.2, 0],
];

/** A model whose next token depends on the last one alone; what it is asked is written down. */
class ToyModel extends Module {
  readonly encoded: number[] = [];
  readonly decodedRows: number[] = [];
  srcEmbed = new Module();
  tgtEmbed = new Module();
  generator = {
    proj: { outFeatures: 6 },
    forward: (hidden: Tensor) => tidy(() => hidden.matmul(this.#table).log()),
  };
  readonly #table: Tensor;

  constructor(table = toyTable) {
    super();
    this.#table = tensor(table);
  }

  encode(src: Tensor): Tensor {
    this.encoded.push(src.shape[0] as number);
    return zeros([src.shape[0] as number, src.shape[1] as number, 1]);
  }

  decode(_memory: Tensor, _srcMask: Tensor, tgt: Tensor): Tensor {
    this.decodedRows.push(tgt.shape[0] as number);
    return tidy(() =>
      tgt
        .unsqueeze(2)
        .eq(tensor([0, 1, 2, 3, 4, 5], { dtype: 'int64' }))
        .float(),
    );
  }
}

async function decodeToy(
  model: ToyModel,
  rows: number,
  options: { maxLength?: number; signal?: AbortSignal } = {},
): Promise<Decoded[]> {
  const src = tensor(Array.from({ length: rows }, () => [3n]));
  const mask = paddingMask(src, 0);
  try {
    return await greedy(model.eval() as unknown as Transformer, src, mask, {
      ...ids,
      maxLength: 10,
      ...options,
    });
  } finally {
    src.dispose();
    mask.dispose();
  }
}

describe('greedy decoding', () => {
  test('takes the most probable token at each step until the end token', async () => {
    expect(await decodeToy(new ToyModel(), 1)).toEqual([{ ids: [3, 5], ended: true }]);
  });

  test('encodes once and takes ended rows no further', async () => {
    const model = new ToyModel();
    await decodeToy(model, 4);
    expect(model.encoded).toEqual([4]);
    expect(model.decodedRows).toEqual([4, 4, 4]);
  });

  test('never writes pad or bos, however probable they are', async () => {
    const table = toyTable.map((row) => [...row]);
    table[3] = [0.5, 0.4, 0.06, 0, 0, 0.04];
    expect(await decodeToy(new ToyModel(table), 1)).toEqual([{ ids: [3], ended: true }]);
  });

  test('of equals takes the lowest id', async () => {
    const table = toyTable.map((row) => [...row]);
    table[1] = [0, 0, 0, 0.2, 0.4, 0.4];
    expect(await decodeToy(new ToyModel(table), 1)).toEqual([{ ids: [4], ended: true }]);
  });

  test('is cut off at maxLength, the end token included, and says so', async () => {
    expect(await decodeToy(new ToyModel(), 1, { maxLength: 2 })).toEqual([
      { ids: [3, 5], ended: false },
    ]);
    expect(await decodeToy(new ToyModel(), 1, { maxLength: 3 })).toEqual([
      { ids: [3, 5], ended: true },
    ]);
  });

  test('gives the event loop a turn between two steps', async () => {
    const model = new ToyModel();
    const turns: number[] = [];
    const count = () => {
      turns.push(model.decodedRows.length);
      if (model.decodedRows.length < 3) setImmediate(count);
    };
    setImmediate(count);
    await decodeToy(model, 1);
    expect(turns).toContain(1);
    expect(turns).toContain(2);
  });

  test('stops at a signal with its reason', async () => {
    const model = new ToyModel();
    const controller = new AbortController();
    setImmediate(() => controller.abort(new Error('enough')));
    await expect(decodeToy(model, 1, { signal: controller.signal })).rejects.toThrow('enough');
    expect(model.decodedRows.length).toBeLessThan(3);
  });

  test('in training mode is refused: dropout would change the result', async () => {
    const model = new ToyModel();
    model.eval();
    const src = tensor([[3n]]);
    const mask = paddingMask(src, 0);
    await expect(
      greedy(model.train() as unknown as Transformer, src, mask, { ...ids, maxLength: 3 }),
    ).rejects.toThrow(/training mode.*call model\.eval\(\)/);
    src.dispose();
    mask.dispose();
  });

  test('with a part in training mode is refused, too', async () => {
    const model = makeModel(9, { N: 1, dModel: 4, dFf: 4, h: 1 }).eval();
    model.decoder.layers.at(0).feedForward.train();
    const src = tensor([[3n]]);
    await expect(greedy(model, src, paddingMask(src, 0), { ...ids, maxLength: 3 })).rejects.toThrow(
      'greedy: decoder.layers.0.feed_forward of the model is in training mode, ' +
        'so dropout would change the result; call model.eval()',
    );
    model.dispose();
    src.dispose();
  });

  test('refuses ids that cannot be told apart and lengths that do not exist', async () => {
    const model = new ToyModel().eval() as unknown as Transformer;
    const src = tensor([[3n]]);
    const mask = paddingMask(src, 0);
    const run = (options: object) => greedy(model, src, mask, { ...ids, maxLength: 3, ...options });
    await expect(run({ eos: 0 })).rejects.toThrow(/pad and eos are both 0/);
    await expect(run({ bos: 6 })).rejects.toThrow(/bos must be an id from 0 to 5/);
    await expect(run({ maxLength: 0 })).rejects.toThrow(
      /maxLength must be an integer at least 1, got 0/,
    );
    await expect(run({ maxLength: undefined })).rejects.toThrow(
      /no position table to limit the output; pass maxLength/,
    );
    await expect(run({ beams: 4 })).rejects.toThrow(/unknown option "beams"/);
    src.dispose();
    mask.dispose();
  });
});

describe('with a real model', () => {
  const sources = [
    [1, 5, 2],
    [1, 7, 8, 9, 2],
    [1, 3, 2],
    [1, 4, 4, 4, 4, 4, 4, 2],
  ];

  async function decode(
    model: Transformer,
    rows: number[][],
    maxLength?: number,
  ): Promise<Decoded[]> {
    const width = Math.max(...rows.map((row) => row.length));
    const src = tensor(
      rows.map((row) => [...row, ...Array<number>(width - row.length).fill(0)]),
      { dtype: 'int64' },
    );
    const mask = paddingMask(src, 0);
    try {
      return await greedy(model, src, mask, {
        ...ids,
        ...(maxLength === undefined ? {} : { maxLength }),
      });
    } finally {
      src.dispose();
      mask.dispose();
    }
  }

  test('a row in a batch gives what it gives alone', async () => {
    const model = tinyModel(20).eval();
    const together = await decode(model, sources);
    for (const [index, row] of sources.entries()) {
      expect(await decode(model, [row])).toEqual([together[index]]);
    }
    model.dispose();
  });

  test('targets are at most as long as the position table', async () => {
    const model = tinyModel(20, { maxLen: 8 }).eval();
    for (const { ids: output } of await decode(model, sources))
      expect(output.length).toBeLessThanOrEqual(8);
    await expect(decode(model, sources, 9)).rejects.toThrow(
      "greedy: maxLength 9 exceeds the 8 positions of the model's table",
    );
    model.dispose();
  });

  test('an empty batch gives no output', async () => {
    const model = tinyModel(20).eval();
    const src = zeros([0, 3], { dtype: 'int64' });
    const mask = zeros([0, 1, 3], { dtype: 'bool' });
    expect(await greedy(model, src, mask, ids)).toEqual([]);
    for (const used of [src, mask]) used.dispose();
    model.dispose();
  });
});

describe('Translator', () => {
  let task: TinyTask;
  let translator: Translator;
  beforeAll(async () => {
    task = await tinyTask();
    const model = tinyModel(task.tokenizer.vocabSize, { maxLen: 24 }).eval();
    const { tokenizer, specialIds } = task;
    translator = new Translator(model, { tokenizer, specialIds });
  });
  const texts = ['sixty nine', 'twenty', '', 'thirty three', '   ', 'fifty'];

  test('gives one output for each text, in their order, whatever the batches', async () => {
    const outputs = await translator.translate(texts);
    expect(outputs).toHaveLength(texts.length);
    for (const batchSize of [1, 2, 3]) {
      expect(await translator.translate(texts, { batchSize })).toEqual(outputs);
    }
    for (const [index, text] of texts.entries()) {
      expect(await translator.translate([text])).toEqual([outputs[index]]);
    }
  });

  test('gives empty outputs for empty texts, and nothing for no text', async () => {
    expect(await translator.translate(['', ' \t', '\u3000'])).toEqual(['', '', '']);
    expect(await translator.translate([])).toEqual([]);
  });

  test('leaves special tokens out that a text spells', async () => {
    expect(await translator.translate(['<eos>six<pad>ty<bos>'])).toEqual(
      await translator.translate(['sixty']),
    );
    expect(await translator.translate(['<pad>'])).toEqual(['']);
  });

  test('serves several callers at once', async () => {
    const alone = await translator.translate(['sixty']);
    const both = await Promise.all([translator.translate(['sixty']), translator.translate(texts)]);
    expect(both).toEqual([alone, await translator.translate(texts)]);
  });

  test('names a text that is too long for the model, with both numbers', async () => {
    const error: unknown = await translator
      .translate(['sixty', 'a'.repeat(23)])
      .catch((fault: unknown) => fault);
    expect(error).toBeInstanceOf(TextTooLongError);
    expect(error).toMatchObject({ index: 1, tokens: 25, limit: 24 });
    expect((error as Error).message).toContain(
      "texts[1] has 25 tokens (with bos and eos), the model's position table 24",
    );
  });

  test('stops at a signal', async () => {
    await expect(
      translator.translate(texts, { signal: AbortSignal.abort(new Error('no')) }),
    ).rejects.toThrow('no');
  });

  test('takes a single text', async () => {
    const [text = ''] = texts;
    const [output] = await translator.translate([text]);
    expect(await translator.translate(text)).toBe(output);
  });

  test('refuses what is no list of texts', async () => {
    await expect(translator.translate(60 as unknown as string[])).rejects.toThrow(
      /must be an array of strings, got 60/,
    );
    await expect(translator.translate(['a', 7 as unknown as string])).rejects.toThrow(
      /texts\[1\] must be a string, got 7/,
    );
    await expect(translator.translate([], { batchSize: 0 })).rejects.toThrow(RangeError);
  });

  test('is of no use after dispose', async () => {
    const model = tinyModel(task.tokenizer.vocabSize).eval();
    const { tokenizer, specialIds } = task;
    const short = new Translator(model, { tokenizer, specialIds });
    short.dispose();
    await expect(short.translate(['sixty'])).rejects.toMatchObject({ code: 'ERR_DISPOSED' });
  });
});
