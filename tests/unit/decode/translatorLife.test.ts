/** Loading with a precision, encoding, and closing. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  memory,
  noGrad,
  paddingMask,
  saveModel,
  tensor,
  tidy,
  Translator,
  type Tensor,
} from 'torchformer';
import { fiftyPairs, tinyModel, tinyTask, type TinyTask } from '../../support/tinyTranslation.js';

let task: TinyTask;
beforeAll(async () => {
  task = await tinyTask();
});

function translator(precision?: 'float32' | 'bfloat16' | 'int8'): Translator {
  const { tokenizer, specialIds } = task;
  const model = tinyModel(tokenizer.vocabSize).eval();
  return new Translator(model, { tokenizer, specialIds, precision });
}

const maxLength = 4;
const texts = fiftyPairs.slice(0, 9).map(({ src }) => src);

describe('precision', () => {
  test('changes scores a little, and is kept by load', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'torchformer-precision-'));
    const exact = translator();
    const { tokenizer, specialIds } = task;
    await saveModel(folder, exact.model, { tokenizer, specialIds });
    const pair = [{ source: 'twenty', target: '20' }];
    const [{ score } = { score: NaN }] = await exact.score(pair);
    for (const precision of ['bfloat16', 'int8'] as const) {
      const constructed = translator(precision);
      const loaded = await Translator.load(folder, { precision });
      const [own] = await constructed.score(pair);
      expect(own?.score).not.toBe(score);
      expect(Math.abs((own?.score ?? NaN) - score)).toBeLessThan(0.1 * Math.abs(score));
      expect(await loaded.score(pair)).toEqual([own]);
      constructed.dispose();
      loaded.dispose();
    }
    exact.dispose();
    rmSync(folder, { recursive: true });
  });

  test('is for models that are decoded natively', async () => {
    const used = translator('int8');
    used.model.encoder.registerForwardHook(() => undefined);
    await expect(used.translate(texts)).rejects.toThrow(
      /translate: precision int8 is for models that are decoded natively, but encoder has hooks/,
    );
    used.dispose();
  });

  test('that does not exist is refused, before a model is loaded', async () => {
    const precision = 'int4' as 'int8';
    expect(() => translator(precision)).toThrow(
      "Translator: precision must be 'float32', 'bfloat16' or 'int8', got the string \"int4\"",
    );
    await expect(Translator.load('/no/such/folder', { precision })).rejects.toThrow(
      /Translator\.load: precision must be/,
    );
  });
});

describe('encode', () => {
  test("gives the encoder's output for each text, as the modules compute it", async () => {
    const used = translator();
    const { bos, eos, pad } = task.specialIds;
    const states = await used.encode(texts);
    for (const [index, text] of texts.entries()) {
      const source = [bos, ...(await task.tokenizer.encode(text)), eos];
      const own = states[index] as Tensor;
      expect(own.shape).toEqual([source.length, 32]);
      const largest = tidy(() => {
        const src = tensor([source], { dtype: 'int64' });
        const expected = noGrad(() => used.model.encode(src, paddingMask(src, pad)));
        return expected.squeeze(0).sub(own).abs().max().item();
      });
      expect(largest).toBeLessThan(1e-5);
    }
    for (const tensor of states) tensor.dispose();
    used.dispose();
  });

  test('gives the same states alone and with many others', async () => {
    const used = translator();
    const many = Array.from({ length: 70 }, (_, index) => texts[index % texts.length] as string);
    const [alone] = await used.encode([texts[3] as string]);
    const together = await used.encode(many);
    expect(together).toHaveLength(70);
    expect(together[66]?.data()).toEqual(alone?.data());
    for (const tensor of [alone as Tensor, ...together]) tensor.dispose();
    used.dispose();
  });

  test('leaves no tensors but those that it returns', async () => {
    const used = translator();
    await used.encode([]);
    const before = memory().tensors;
    const states = await used.encode(texts);
    expect(memory().tensors - before).toBe(texts.length);
    for (const tensor of states) tensor.dispose();
    expect(memory().tensors).toBe(before);
    used.dispose();
  });

  test.each<[string, unknown, unknown, RegExp]>([
    ['an empty text', ['forty', ' '], {}, /Translator\.encode: texts\[1\] is empty; leave it out/],
    ['a text that is too long', ['x'.repeat(40)], {}, /texts\[0\] has 42 tokens/],
    ['a string', 'forty', {}, /texts must be an array/],
    ['an unknown option', [], { beam: 2 }, /unknown option .*beam/],
    ['an aborted signal', ['forty'], { signal: AbortSignal.abort(new Error('no')) }, /^Error: no$/],
  ])('%s is refused', async (_name, given, options, message) => {
    const used = translator();
    const failure: unknown = await used
      .encode(given as string[], options as object)
      .catch((error: unknown) => error);
    expect(String(failure)).toMatch(message);
    used.dispose();
  });
});

describe('close', () => {
  test('waits for running calls, refuses new ones, then frees the model', async () => {
    const before = memory().tensors;
    const used = translator();
    const running = used.translate(texts, { maxLength });
    let isClosed = false;
    const closing = used.close().then(() => {
      isClosed = true;
    });
    const fault = {
      code: 'ERR_DISPOSED',
      message: 'Translator.translate: the translator has been closed; load a new one',
    };
    await expect(used.translate(texts)).rejects.toMatchObject(fault);
    expect(isClosed).toBe(false);
    expect(await running).toHaveLength(texts.length);
    await closing;
    expect(memory().tensors).toBe(before);
    await expect(used.translate(texts)).rejects.toMatchObject({ code: 'ERR_DISPOSED' });
  });

  test('waits for lines that are being translated to their end', async () => {
    const used = translator();
    const outputs = used.translateLines(texts, { maxLength, window: 2, batchSize: 1 });
    await outputs.next();
    const closing = used.close();
    const rest: string[] = [];
    for await (const output of outputs) rest.push(output);
    expect(rest).toHaveLength(texts.length - 1);
    await closing;
    await expect(used.translateLines(texts).next()).rejects.toThrow(/translateLines: .*disposed/);
  });

  test('waits for a stream of pieces, which may be left early', async () => {
    const used = translator();
    const pieces = used.translateStreaming('forty', { maxLength: 20 });
    await pieces.next();
    const closing = used.close();
    await pieces.return?.();
    await closing;
  });

  test('may be called twice, and before or after dispose', async () => {
    const used = translator();
    expect(used.close()).toBe(used.close());
    await used.close();
    used.dispose();
    const other = translator();
    other.dispose();
    await other.close();
  });

  test('does not wait for ever if dispose is called meanwhile', async () => {
    const used = translator();
    const running = used.translate(texts).catch((error: unknown) => error);
    const closing = used.close();
    used.dispose();
    await closing;
    await running;
  });

  test('runs at the end of a block with await using', async () => {
    let used: Translator;
    {
      await using inside = translator();
      used = inside;
      await inside.translate(['forty'], { maxLength });
    }
    await expect(used.translate(['forty'])).rejects.toMatchObject({ code: 'ERR_DISPOSED' });
  });
});
