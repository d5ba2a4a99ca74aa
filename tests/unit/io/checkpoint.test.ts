import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  findModelFolder,
  Generator,
  getRngState,
  Linear,
  loadModel,
  memory,
  paddingMask,
  readSafetensors,
  saveModel,
  targetMask,
  tensor,
  tidy,
  Transformer,
  Translator,
  writeSafetensors,
  type Tensor,
} from 'torchformer';
import { tinyModel, tinyTask, weightsOf, type TinyTask } from '../../support/tinyTranslation.js';

let root: string;
let task: TinyTask;
let model: Transformer;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'torchformer-checkpoint-'));
  task = await tinyTask();
  model = tinyModel(task.tokenizer.vocabSize);
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folders = 0;
const fresh = () => join(root, `model-${folders++}`);

async function saved(): Promise<string> {
  const folder = fresh();
  const { tokenizer, specialIds } = task;
  await saveModel(folder, model, { tokenizer, specialIds });
  return folder;
}

/** What `loadModel` says of a damaged folder, without the folder's path. */
async function faultOf(folder: string): Promise<string> {
  const error: unknown = await loadModel(folder).then(
    () => null,
    (fault: unknown) => fault,
  );
  expect(error, 'the folder must be refused').toBeInstanceOf(Error);
  expect((error as { code: string }).code).toBe('ERR_CHECKPOINT');
  return (error as Error).message.replaceAll(folder, '');
}

interface ConfigFile {
  [key: string]: unknown;
  model: Record<string, unknown> & { vocabSize: number };
  specialIds: { pad: number; bos: number; eos: number } | null;
}

function editConfig(folder: string, edit: (config: ConfigFile) => void): void {
  const path = join(folder, 'config.json');
  const config = JSON.parse(readFileSync(path, 'utf8')) as ConfigFile;
  edit(config);
  writeFileSync(path, JSON.stringify(config));
}

describe('a saved model', () => {
  test('loads with the same results, settings, ids and tokenizer', async () => {
    const folder = fresh();
    const { tokenizer, specialIds } = task;
    await saveModel(folder, model, {
      tokenizer,
      specialIds,
      columns: { source: 'en', target: 'zh' },
      training: { epoch: 3, validationLoss: 1.25 },
    });
    expect(readdirSync(folder).sort()).toEqual([
      'config.json',
      'model.safetensors',
      'tokenizer.json',
    ]);
    const loaded = await loadModel(folder);
    expect(loaded.config).toEqual({
      model: model.config,
      dtype: 'float32',
      specialIds,
      tokenizerVocabSize: tokenizer.vocabSize,
      columns: { source: 'en', target: 'zh' },
      training: { epoch: 3, validationLoss: 1.25 },
      ties: null,
      ownModules: [],
    });
    expect(loaded.tokenizer?.toJson()).toBe(tokenizer.toJson());
    expect(loaded.model.training).toBe(false);

    const run = (of: Transformer): Tensor => {
      const src = tensor([[1n, 5n, 2n]]);
      const tgt = tensor([[1n, 6n]]);
      return of.eval().forward(src, tgt, paddingMask(src, 0), targetMask(tgt, 0));
    };
    tidy(() => expect(run(loaded.model).data()).toEqual(run(model).data()));
    loaded.model.dispose();
  });

  test('has its weights under the names of the PyTorch classes', async () => {
    const file = await readSafetensors(join(await saved(), 'model.safetensors'));
    expect(file.names).toContain('encoder.layers.0.self_attn.linears.0.weight');
    expect(file.names).toContain('src_embed.0.embedding.weight');
    expect(file.names).toContain('generator.proj.bias');
    expect(file.metadata).toEqual({ format: 'pt' });
    await file.close();
  });

  test('in float64 comes back in float64', async () => {
    const folder = fresh();
    const double = tinyModel(task.tokenizer.vocabSize).double();
    await saveModel(folder, double);
    const loaded = await loadModel(folder);
    expect(loaded.model.generator.proj.weight.dtype).toBe('float64');
    expect(weightsOf(loaded.model)).toEqual(weightsOf(double));
    expect(loaded).toMatchObject({ tokenizer: null, config: { specialIds: null } });
    loaded.model.dispose();
    double.dispose();
  });

  test('is found in the folder of a run: best, else last', async () => {
    const run = fresh();
    mkdirSync(run);
    cpSync(await saved(), join(run, 'last'), { recursive: true });
    const last = await loadModel(run);
    expect(last.folder).toBe(join(run, 'last'));
    cpSync(await saved(), join(run, 'best'), { recursive: true });
    const best = await loadModel(run);
    expect(best.folder).toBe(join(run, 'best'));
    last.model.dispose();
    best.model.dispose();
  });

  test('loads without changing the random numbers that follow', async () => {
    const folder = await saved();
    const before = getRngState();
    const loaded = await loadModel(folder);
    const after = getRngState();
    expect(after.data()).toEqual(before.data());
    for (const used of [before, after, loaded.model]) used.dispose();
  });

  test('saves and loads without leaving a tensor behind', async () => {
    const before = memory().tensors;
    const loaded = await loadModel(await saved());
    loaded.model.dispose();
    expect(memory().tensors).toBe(before);
  });
});

describe('a damaged folder is an error that names the file and the fault', () => {
  test.each<[string, (folder: string) => void, string | RegExp]>([
    [
      'truncated weights',
      (folder) => {
        const path = join(folder, 'model.safetensors');
        truncateSync(path, statSync(path).size - 1000);
      },
      /^\/model\.safetensors: truncated: the tensors need \d+ bytes of data, the file has \d+/,
    ],
    [
      'no weights',
      (folder) => rmSync(join(folder, 'model.safetensors')),
      '/model.safetensors: no such file',
    ],
    [
      'no config',
      (folder) => rmSync(join(folder, 'config.json')),
      ': no model in it: there is no config.json',
    ],
    ['no folder', (folder) => rmSync(folder, { recursive: true }), ': no such folder'],
    [
      'a cut config',
      (folder) => truncateSync(join(folder, 'config.json'), 40),
      '/config.json: not valid JSON',
    ],
    [
      'a config of something else',
      (folder) => writeFileSync(join(folder, 'config.json'), '{"model_type":"marian"}'),
      '/config.json: not the config of a model saved here',
    ],
    [
      'a newer format',
      (folder) => editConfig(folder, (config) => (config['formatVersion'] = 3)),
      '/config.json: saved by a newer torchformer (format 3, this one reads up to 2); update it',
    ],
    [
      'an unknown setting of the model',
      (folder) => editConfig(folder, (config) => (config.model['relativeBias'] = 32)),
      '/config.json: makeModel: unknown option "relativeBias"',
    ],
    [
      'another vocabulary size',
      (folder) => editConfig(folder, (config) => (config.model.vocabSize += 1)),
      '/model.safetensors: generator.proj.weight is [',
    ],
    [
      'another number of layers',
      (folder) => editConfig(folder, (config) => (config.model['N'] = 5)),
      '/model.safetensors: 1 encoder layers, but /config.json says N 5',
    ],
    [
      'another inner size',
      (folder) => editConfig(folder, (config) => (config.model['dFf'] = 7)),
      /^\/model\.safetensors: loadStateDict: the state dict does not fit Transformer; nothing was loaded/,
    ],
    [
      'an unknown dtype',
      (folder) => editConfig(folder, (config) => (config['dtype'] = 'int8')),
      '/config.json: dtype must be one of',
    ],
    [
      'pad and eos the same',
      (folder) => editConfig(folder, (config) => (config.specialIds = { pad: 2, bos: 1, eos: 2 })),
      '/config.json: specialIds: pad and eos are both 2',
    ],
    [
      'a cut tokenizer',
      (folder) => truncateSync(join(folder, 'tokenizer.json'), 100),
      '/tokenizer.json: tokenizer: not valid JSON',
    ],
  ])('%s', async (_name, damage, message) => {
    const folder = await saved();
    damage(folder);
    const fault = await faultOf(folder);
    if (typeof message === 'string') expect(fault).toContain(message);
    else expect(fault).toMatch(message);
  });

  test('a tokenizer larger than the model', async () => {
    const folder = await saved();
    const other = await saved();
    const small = tinyModel(10);
    await saveModel(other, small);
    cpSync(join(folder, 'tokenizer.json'), join(other, 'tokenizer.json'));
    expect(await faultOf(other)).toContain(
      `/tokenizer.json: its vocabulary of ${task.tokenizer.vocabSize} is larger than the model's, 10`,
    );
    small.dispose();
  });

  test('weights of other names', async () => {
    const folder = await saved();
    const state = new Map(
      [...model.stateDict()].map(([name, value]) => [name.replace('self_attn', 'attn'), value]),
    );
    await writeSafetensors(join(folder, 'model.safetensors'), state);
    expect(await faultOf(folder)).toMatch(
      /missing: "encoder\.layers\.0\.self_attn\.linears\.0\.weight"/,
    );
  });

  test('a translator needs the tokenizer and the ids', async () => {
    const folder = await saved();
    rmSync(join(folder, 'tokenizer.json'));
    await expect(Translator.load(folder)).rejects.toThrow(/it has no tokenizer\.json/);
    const withoutIds = await saved();
    editConfig(withoutIds, (config) => (config.specialIds = null));
    await expect(Translator.load(withoutIds)).rejects.toThrow(/config\.json has no specialIds/);
  });
});

describe('saving', () => {
  const isRoot = process.getuid?.() === 0;

  test('replaces a model and keeps the mode and the other files of its folder', async () => {
    const folder = await saved();
    writeFileSync(join(folder, 'README.md'), 'mine');
    mkdirSync(join(folder, 'notes'));
    writeFileSync(join(folder, 'notes', 'a.txt'), 'too');
    chmodSync(folder, 0o750);
    chmodSync(join(folder, 'config.json'), 0o600);
    await saveModel(folder, model, { training: { epoch: 2 } });
    expect(readFileSync(join(folder, 'README.md'), 'utf8')).toBe('mine');
    expect(readFileSync(join(folder, 'notes', 'a.txt'), 'utf8')).toBe('too');
    expect(statSync(folder).mode & 0o777).toBe(0o750);
    expect(statSync(join(folder, 'config.json')).mode & 0o777).toBe(0o600);
    const loaded = await loadModel(folder);
    expect(loaded.config.training).toEqual({ epoch: 2 });
    loaded.model.dispose();
  });

  test('drops the tokenizer of the old model when the new one has none', async () => {
    const folder = await saved();
    await saveModel(folder, model);
    expect(existsSync(join(folder, 'tokenizer.json'))).toBe(false);
  });

  test('through a symbolic link keeps the link', async () => {
    const target = await saved();
    const link = fresh();
    symlinkSync(target, link);
    await saveModel(link, model, { training: { epoch: 7 } });
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    const loaded = await loadModel(target);
    expect(loaded.config.training).toEqual({ epoch: 7 });
    loaded.model.dispose();
  });

  test('over a folder that is no model is refused, and nothing in it changes', async () => {
    const folder = fresh();
    mkdirSync(folder);
    writeFileSync(join(folder, 'thesis.tex'), 'years of work');
    writeFileSync(join(folder, 'config.json'), '{"name":"another program"}');
    await expect(saveModel(folder, model)).rejects.toMatchObject({
      code: 'ERR_CHECKPOINT',
      message: expect.stringContaining(
        'contains files but no model (config.json, thesis.tex)',
      ) as string,
    });
    expect(readdirSync(folder).sort()).toEqual(['config.json', 'thesis.tex']);
  });

  test('over a file is refused', async () => {
    const path = fresh();
    writeFileSync(path, '');
    await expect(saveModel(path, model)).rejects.toThrow(/a file with this name already exists/);
  });

  test('in a folder that may not be written to is an error, and the old model stays', async () => {
    const parent = fresh();
    mkdirSync(parent);
    const folder = join(parent, 'model');
    cpSync(await saved(), folder, { recursive: true });
    chmodSync(root, 0o755);
    chmodSync(parent, 0o555);
    // For root no folder is closed: try as nobody.
    if (isRoot) process.seteuid?.(65534);
    try {
      await expect(saveModel(folder, model)).rejects.toMatchObject({
        code: 'ERR_CHECKPOINT',
        message: expect.stringMatching(
          /cannot save .*: permission denied .*; what was there before is unchanged/,
        ) as string,
      });
    } finally {
      if (isRoot) process.seteuid?.(0);
      chmodSync(parent, 0o755);
    }
    const loaded = await loadModel(folder);
    loaded.model.dispose();
    expect(readdirSync(parent)).toEqual(['model']);
  });

  test('of a tokenizer larger than the model, which nobody could load, is refused', async () => {
    const { tokenizer, specialIds } = task;
    const size = tokenizer.vocabSize;
    const folder = fresh();
    for (const vocabSize of [
      size - 1,
      { src: size - 1, tgt: size },
      { src: size, tgt: size - 1 },
    ]) {
      const small = tinyModel(vocabSize);
      await expect(saveModel(folder, small, { tokenizer, specialIds })).rejects.toThrow(
        `saveModel: the tokenizer has ${size} ids, the model only ${size - 1}`,
      );
      small.dispose();
    }
    expect(existsSync(folder)).toBe(false);
  });

  test.each([{ columns: 'en' }, { training: [1] }, { columns: 5 }])(
    'of %j, which loading would refuse, is refused',
    async (options) => {
      const folder = fresh();
      await expect(saveModel(folder, model, options as never)).rejects.toThrow(
        /saveModel: (columns|training) must be/,
      );
      expect(existsSync(folder)).toBe(false);
    },
  );

  test('of a model that makeModel did not make is refused with the way out', async () => {
    const { encoder, decoder, srcEmbed, tgtEmbed } = model;
    const own = new Transformer(encoder, decoder, srcEmbed, tgtEmbed, new Generator(32, 5));
    await expect(saveModel(fresh(), own)).rejects.toThrow(
      /not made by makeModel.*writeSafetensors/s,
    );
    expect(own.generator.proj).toBeInstanceOf(Linear);
    own.generator.dispose();
  });
});

describe('arguments of no use', () => {
  test.each([null, 5, '', {}])('a folder that is %o', async (folder) => {
    const path = folder as string;
    await expect(findModelFolder(path)).rejects.toThrow(/findModelFolder: folder must be a path/);
    await expect(loadModel(path)).rejects.toThrow(/loadModel: folder must be a path/);
    await expect(saveModel(path, null as never)).rejects.toThrow(
      /saveModel: folder must be a path/,
    );
  });

  test('a model that is none', async () => {
    await expect(saveModel('folder', null as never)).rejects.toThrow(
      /saveModel: model must be a Transformer/,
    );
  });

  test.each([null, 1, 'tokenizer.json', [], {}])(
    'a tokenizer that is none: %j',
    async (tokenizer) => {
      const folder = fresh();
      await expect(saveModel(folder, model, { tokenizer: tokenizer as never })).rejects.toThrow(
        /^saveModel: tokenizer must be a Tokenizer, got/,
      );
      expect(existsSync(folder)).toBe(false);
    },
  );
});
