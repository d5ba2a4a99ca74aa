/** Files and folders in the place of those that a function reads. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadModel, readSafetensors, saveModel, Tokenizer, Translator } from 'torchformer';
import { tinyModel } from '../../support/tinyTranslation.js';

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'torchformer-formats-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

let files = 0;
function written(content: Uint8Array | string, name = `${files++}.pth`): string {
  const path = join(root, name);
  writeFileSync(path, content);
  return path;
}

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');
const convert = 'save the weights as safetensors in Python first: safetensors.torch.save_file(';

const formats: [string, Uint8Array | string, string][] = [
  // The first bytes of what torch.save writes: a zip archive without compression.
  [
    'a PyTorch file',
    hex('504b0304 00000808 00000000 00000000 00000000 00000000 00001000 0f00 6d6f64656c2f64617461'),
    `not a safetensors file but a PyTorch file (torch.save), or another zip archive; ${convert}`,
  ],
  [
    'an old PyTorch file',
    hex('80028a0a 6cfc9c46 f9206aa8 50192e80 024de903 2e'),
    `not a safetensors file but an old PyTorch file (torch.save); ${convert}`,
  ],
  ...['80027d71 00580100', '80037d71 00580100', '80049590 03000000', '80059590 03000000'].map(
    (bytes): [string, Uint8Array, string] => [
      `a pickle of protocol ${bytes[3]}`,
      hex(bytes),
      `not a safetensors file but a Python pickle; ${convert}`,
    ],
  ),
  [
    'a Git LFS pointer',
    'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n',
    'not a safetensors file but a Git LFS pointer; fetch the file itself: git lfs pull',
  ],
];

describe.each(formats)('%s', (_, content, message) => {
  test('is named by readSafetensors', async () => {
    const path = written(content);
    await expect(readSafetensors(path)).rejects.toMatchObject({
      code: 'ERR_CHECKPOINT',
      message: expect.stringContaining(`${path}: ${message}`) as string,
    });
  });

  test('is named in the place of a model', async () => {
    const path = written(content);
    for (const load of [loadModel, Translator.load.bind(Translator)]) {
      await expect(load(path)).rejects.toMatchObject({
        code: 'ERR_CHECKPOINT',
        message: expect.stringContaining(
          `${path}: a model is a folder written by saveModel or a training run; this is ${message}`,
        ) as string,
      });
    }
  });

  test('is named as the weights of a model folder', async () => {
    const folder = join(root, `model-${files++}`);
    const model = tinyModel(20);
    await saveModel(folder, model);
    model.dispose();
    writeFileSync(join(folder, 'model.safetensors'), content);
    await expect(loadModel(folder)).rejects.toThrow(message);
  });
});

describe('a path that leads to something else', () => {
  test.each(['model.safetensors', 'config.json'])(
    'a %s in a model folder: the folder is what is needed',
    async (name) => {
      const folder = join(root, `model-${files++}`);
      const model = tinyModel(20);
      await saveModel(folder, model);
      model.dispose();
      const path = join(folder, name);
      await expect(loadModel(path)).rejects.toMatchObject({
        code: 'ERR_CHECKPOINT',
        message: `${path}: a model is the whole folder, not a file in it: pass ${folder}`,
      });
      await expect(loadModel(join(path, 'x'))).rejects.toMatchObject({
        code: 'ERR_CHECKPOINT',
        message: `${join(path, 'x')}: a part of the path is a file, not a folder`,
      });
    },
  );

  test('a folder, or a path through a file, as a safetensors file', async () => {
    await expect(readSafetensors(root)).rejects.toMatchObject({
      code: 'ERR_CHECKPOINT',
      message: `${root}: it is a folder, not a file`,
    });
    const path = join(written('x'), 'y');
    await expect(readSafetensors(path)).rejects.toMatchObject({
      message: `${path}: no such file: a part of the path is a file, not a folder`,
    });
  });

  test('a folder, or a path through a file, as a tokenizer', async () => {
    const folder = join(root, `folder-${files++}`);
    mkdirSync(folder);
    await expect(Tokenizer.fromFile(folder)).rejects.toMatchObject({
      code: 'ERR_DATA',
      message: `${folder}: it is a folder; pass the tokenizer.json in it`,
    });
    const path = join(written('x'), 'tokenizer.json');
    await expect(Tokenizer.fromFile(path)).rejects.toMatchObject({
      code: 'ERR_DATA',
      message: `${path}: there is no such file: a part of the path is a file, not a folder`,
    });
  });
});
