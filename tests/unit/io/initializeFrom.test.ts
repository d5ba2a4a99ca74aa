import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  applyLora,
  describeInitialization,
  initializeFrom,
  makeModel,
  manualSeed,
  memory,
  saveModel,
  Tokenizer,
  writeSafetensors,
} from 'torchformer';
import type { InitializeOptions, ModelOptions, Tensor, Transformer } from 'torchformer';
import { numbers } from '../../support/numbers.js';
import { weightsOf } from '../../support/tinyTranslation.js';

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'torchformer-initialize-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

let count = 0;
const fresh = (name = '') => join(root, `${count++}${name}`);

/** A tokenizer of whole words with these ids. */
function words(...tokens: string[]): Tokenizer {
  return Tokenizer.fromJson({
    version: '1.0',
    model: {
      type: 'WordLevel',
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      unk_token: '<pad>',
    },
    pre_tokenizer: { type: 'Whitespace' },
  });
}

const general = words('<pad>', '<s>', '</s>', 'cat', 'dog', 'house');
const medical = words('<pad>', '<s>', '</s>', 'dose', 'dog', 'cat', 'vein');

const sizes = { N: 1, dModel: 8, dFf: 8, h: 2, maxLen: 16 };
function model(vocabSize: number, options: ModelOptions = {}, seed = 1): Transformer {
  manualSeed(seed);
  return makeModel(vocabSize, { ...sizes, ...options });
}

let saved: Transformer;
let folder: string;
beforeAll(async () => {
  saved = model(6);
  folder = fresh();
  await saveModel(folder, saved, { tokenizer: general });
});

/** Another model, drawn with another seed. */
let own: Transformer;
let before: Record<string, ArrayLike<number | bigint>>;
beforeEach(() => {
  own = model(7, {}, 2);
  before = weightsOf(own);
});

const row = (table: Tensor, id: number) => numbers(table.select(0, id));
const embedding = (of: Transformer) => of.getParameter('src_embed.0.embedding.weight');

describe('a model with the same vocabulary', () => {
  test('gets every weight of the source', async () => {
    const same = model(6, {}, 2);
    const report = await initializeFrom(same, folder);
    expect(weightsOf(same)).toEqual(weightsOf(saved));
    expect(report.matched).toEqual([...same.stateDict().keys()]);
    expect([report.missing, report.unused, report.excluded, report.tokens]).toEqual([
      [],
      [],
      [],
      null,
    ]);
    expect(describeInitialization(report)).toBe(
      `initialized ${report.matched.length} of ${report.matched.length} tensors from ${folder}`,
    );
  });

  test('may have another dropout, another table of positions, and fewer layers', async () => {
    const large = fresh();
    await saveModel(large, model(6, { N: 2 }));
    const small = model(6, { dropout: 0.3, maxLen: 40 }, 2);
    const report = await initializeFrom(small, large);
    expect(report.unused).toContain('encoder.layers.1.feed_forward.w_1.weight');
    expect(report.unused.every((name) => name.includes('.layers.1.'))).toBe(true);
  });

  test('keeps its own dtype and stays trainable', async () => {
    const half = model(6, {}, 2).bfloat16();
    await initializeFrom(half, folder);
    expect(embedding(half).dtype).toBe('bfloat16');
    expect(
      Math.abs((row(embedding(half), 3)[0] ?? 0) - (row(embedding(saved), 3)[0] ?? 0)),
    ).toBeLessThan(0.01);
    expect(half.parameterCount({ trainable: false })).toBe(0);
  });

  test('reads the folder of a run, and a safetensors file with the same names', async () => {
    const run = fresh();
    await saveModel(join(run, 'best'), saved);
    const file = fresh('.safetensors');
    await writeSafetensors(file, saved.stateDict());
    for (const source of [run, file]) {
      const same = model(6, {}, 2);
      await initializeFrom(same, source);
      expect(weightsOf(same)).toEqual(weightsOf(saved));
    }
  });
});

describe('a vocabulary that grew and shrank', () => {
  test('has the rows of its tokens, wherever they were; new ones keep what was drawn', async () => {
    const drawn = row(embedding(own), 3);
    const { tokens } = await initializeFrom(own, folder, { tokenizer: medical });
    expect(tokens).toEqual({ matched: 5, drawn: ['dose', 'vein'], unused: ['house'] });
    for (const name of [
      'src_embed.0.embedding.weight',
      'tgt_embed.0.embedding.weight',
      'generator.proj.weight',
    ]) {
      const [mine, theirs] = [own.getParameter(name), saved.getParameter(name)];
      for (const [id, savedId] of [
        [0, 0],
        [1, 1],
        [2, 2],
        [4, 4], // dog
        [5, 3], // cat
      ] as const) {
        expect(row(mine, id), `${name} ${id}`).toEqual(row(theirs, savedId));
      }
    }
    expect(row(embedding(own), 3)).toEqual(drawn);
    const [bias, savedBias] = [own, saved].map((m) => numbers(m.generator.proj.bias as Tensor));
    expect(bias?.[5]).toBe(savedBias?.[3]);
    expect(bias?.[6]).toBe((before['generator.proj.bias'] as Float32Array)[6]);
    expect(own.parameterCount()).toBe(model(7).parameterCount());
  });

  test('matches by token if both vocabularies have the same size', async () => {
    const swapped = words('<pad>', '<s>', '</s>', 'dog', 'cat', 'house');
    const same = model(6, {}, 2);
    const report = await initializeFrom(same, folder, { tokenizer: swapped });
    expect(row(embedding(same), 3)).toEqual(row(embedding(saved), 4));
    expect(row(embedding(same), 4)).toEqual(row(embedding(saved), 3));
    expect(report.tokens).toEqual({ matched: 6, drawn: [], unused: [] });
  });

  test('works with tied tables', async () => {
    const tied = fresh();
    await saveModel(tied, model(6, { tie: 'all' }), { tokenizer: general });
    const ownTied = model(7, { tie: 'all' }, 2);
    await initializeFrom(ownTied, tied, { tokenizer: medical });
    expect(ownTied.generator.proj.weight).toBe(embedding(ownTied));
    expect(row(embedding(ownTied), 5)).toEqual(row(embedding(model(6, { tie: 'all' })), 3));
  });

  test('takes the tokenizer of a file, and tokens with other names', async () => {
    const file = fresh('.safetensors');
    await writeSafetensors(file, saved.stateDict());
    const { tokens } = await initializeFrom(own, file, {
      tokenizer: words('[PAD]', '<s>', '</s>', 'dose', 'dog', 'cat', 'vein'),
      savedTokenizer: general,
      renamedTokens: { '[PAD]': '<pad>' },
    });
    expect(tokens?.matched).toBe(5);
    expect(row(embedding(own), 0)).toEqual(row(embedding(saved), 0));
  });

  test('takes the rows of a table that is longer than its tokenizer', async () => {
    const padded = model(8, {}, 2);
    await initializeFrom(padded, folder, { tokenizer: general });
    expect(row(embedding(padded), 5)).toEqual(row(embedding(saved), 5));
  });

  test('is refused without tokenizers, naming both shapes', async () => {
    await expect(initializeFrom(own, folder)).rejects.toMatchObject({
      code: 'ERR_CHECKPOINT',
      message: expect.stringMatching(
        /src_embed\.0\.embedding\.weight is \[6, 8\] there, \[7, 8\] in the model; .*to match their rows by token, pass the tokenizer of the model/s,
      ) as string,
    });
    expect(weightsOf(own)).toEqual(before);
  });

  test('the report in words', async () => {
    const report = await initializeFrom(own, folder, {
      tokenizer: medical,
      exclude: 'encoder.*',
    });
    const [first, second] = describeInitialization(report).split('\n');
    expect(first).toMatch(
      /^initialized \d+ of \d+ tensors from .* \(\d+ kept by the patterns; \d+ of the source unused: encoder\./,
    );
    expect(second).toBe('tokens: 5 matched, 2 new: "dose", "vein", 1 unused: "house"');
  });
});

describe('parts', () => {
  test('include takes only the parameters that match, exclude all but those', async () => {
    const encoderOnly = await initializeFrom(own, folder, { include: 'encoder.*' });
    expect(encoderOnly.matched.every((name) => name.startsWith('encoder.'))).toBe(true);
    expect(encoderOnly.excluded).toContain('generator.proj.weight');
    const after = weightsOf(own);
    const name = 'encoder.layers.0.feed_forward.w_1.weight';
    expect(after[name]).toEqual(weightsOf(saved)[name]);
    expect(after['generator.proj.weight']).toEqual(before['generator.proj.weight']);

    const rest = await initializeFrom(own, folder, {
      exclude: ['*_embed.*', /^generator/, 'encoder.norm.*'],
    });
    expect(rest.matched).not.toContain('encoder.norm.a_2');
    expect(rest.matched).toContain('decoder.norm.a_2');
  });

  test('a source that lacks parameters is refused, or taken with strict: false', async () => {
    const file = fresh('.safetensors');
    const state = saved.stateDict();
    await writeSafetensors(
      file,
      new Map([...state].filter(([name]) => name.startsWith('encoder.layers.'))),
    );
    await expect(initializeFrom(own, file)).rejects.toThrow(
      /lacks \d+ parameters of the model: encoder\.norm\.a_2, .*strict: false, or the names to take \(include\)/,
    );
    expect(weightsOf(own)).toEqual(before);
    const report = await initializeFrom(own, file, { strict: false });
    expect(report.missing).toContain('encoder.norm.a_2');
    expect(report.matched).toContain('encoder.layers.0.feed_forward.w_1.weight');
  });

  test('a tied parameter needs one of its names', async () => {
    const file = fresh('.safetensors');
    const tied = model(6, { tie: 'all' });
    const state = tied.stateDict();
    state.delete('generator.proj.weight');
    await writeSafetensors(file, state);
    const ownTied = model(6, { tie: 'all' }, 2);
    await initializeFrom(ownTied, file);
    expect(weightsOf(ownTied)).toEqual(weightsOf(tied));
  });
});

describe('what does not fit', () => {
  const refused = async (options: ModelOptions) =>
    initializeFrom(model(6, options, 2), folder).then(
      () => 'nothing',
      (error: Error) => error.message,
    );

  test('other sizes are named with both shapes', async () => {
    expect(await refused({ dFf: 16 })).toMatch(
      /feed_forward\.w_1\.weight is \[8, 8\] there, \[16, 8\] in the model; .*make the model with the same sizes, or leave them out \(exclude\)/s,
    );
  });

  test.each<[ModelOptions, string]>([
    [{ h: 4 }, 'its layers have h 2, those of the model 4'],
    [{ order: 'post' }, 'its layers have order "pre", those of the model "post"'],
    [{ activation: 'gelu' }, 'its layers have activation "relu", those of the model "gelu"'],
  ])('settings that change what layers compute: %j', async (options, message) => {
    expect(await refused(options)).toContain(message);
  });

  test('embeddings alone fit any layers', async () => {
    const other = model(6, { h: 4 }, 2);
    await initializeFrom(other, folder, { include: '*_embed.*' });
    expect(row(embedding(other), 3)).toEqual(row(embedding(saved), 3));
  });

  test('a PyTorch file, with the line of Python that converts it', async () => {
    const file = fresh('.pth');
    // How the zip archives of torch.save begin.
    writeFileSync(file, new Uint8Array([0x50, 0x4b, 0x03, 0x04, 0, 0, 8, 8]));
    await expect(initializeFrom(own, file)).rejects.toThrow(
      "safetensors.torch.save_file(torch.load(path, weights_only=True), 'model.safetensors')",
    );
  });

  test.each([['nothing.safetensors'], ['nothing.pth'], ['nothing']])(
    'no such file: %s',
    async (name) => {
      await expect(initializeFrom(own, join(root, name))).rejects.toMatchObject({
        code: 'ERR_CHECKPOINT',
        message: expect.stringMatching(/no such (file|folder)/) as string,
      });
    },
  );

  test('weights of something else', async () => {
    const file = fresh('.safetensors');
    await writeSafetensors(file, { 'bert.pooler.weight': embedding(saved) });
    await expect(initializeFrom(own, file)).rejects.toThrow(
      'none of its 1 tensor (bert.pooler.weight) has the name of a parameter of the model (encoder.',
    );
  });

  test('low-rank updates that are not merged', async () => {
    const file = fresh('.safetensors');
    const updated = saved.clone();
    applyLora(updated);
    await writeSafetensors(file, updated.stateDict());
    await expect(initializeFrom(model(6), file)).rejects.toThrow(
      'it has low-rank updates that are not merged',
    );
  });

  test('leaves no tensor behind, whether it succeeds or fails', async () => {
    const tensors = memory().tensors;
    await initializeFrom(own, folder, { tokenizer: medical });
    await initializeFrom(own, folder).catch(() => undefined);
    expect(memory().tensors).toBe(tensors);
  });

  test.each<[InitializeOptions, string]>([
    [
      { include: 'encodr.*' },
      'initializeFrom: include encodr.* matches no parameter; names are such as encoder.',
    ],
    [
      { include: 'encoder.*', exclude: 'decoder.*' },
      'initializeFrom: exclude decoder.* matches no parameter',
    ],
    [{ strict: 1 as never }, 'initializeFrom: strict must be true or false, got 1'],
    [{ tokenizer: 'x' as never }, 'initializeFrom: tokenizer must be a Tokenizer'],
    [{ renamedTokens: { a: 'b' } }, 'renamedTokens needs the tokenizer of the model'],
    [
      { vocab: 1 } as never,
      'unknown option "vocab"; valid options: exclude, include, renamedTokens',
    ],
  ])('options: %j', async (options, message) => {
    await expect(initializeFrom(own, folder, options)).rejects.toThrow(message);
  });
});
