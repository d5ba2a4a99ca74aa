/** Tensors that change between the call that saves them and the end of the save. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  Adam,
  full,
  loadModel,
  makeBatch,
  memory,
  noGrad,
  ops,
  readSafetensors,
  saveModel,
  tidy,
  tokenLossSum,
  writeSafetensors,
  type Tensor,
  type Transformer,
} from 'torchformer';
import { tinyModel, weightsOf } from '../../support/tinyTranslation.js';

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'torchformer-changed-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

let files = 0;
const fresh = () => join(root, String(files++));

/** Sizes that take several turns of the event loop to write. */
const manyTensors = (value: number) =>
  Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [`t${index}`, full([1 << 16], value)] as const),
  );

const free = (tensors: Record<string, Tensor>) => {
  for (const tensor of Object.values(tensors)) tensor.dispose();
};

const refusal = {
  code: 'ERR_CHECKPOINT',
  message: expect.stringMatching(
    /^writeSafetensors: tensor ".*" was changed or disposed of while it was being saved/,
  ) as string,
};

/** One step of Adam on all weights, by the fused op. */
async function step(model: Transformer, how: 'step' | 'stepAsync'): Promise<void> {
  const optimizer = new Adam(model.parameters(), { lr: 0.1 });
  tidy(() => {
    const batch = makeBatch([{ src: [1, 5, 2], tgt: [1, 6, 2], row: 1 }], 0);
    tokenLossSum(model, batch, 0).backward();
  });
  await optimizer[how]();
  optimizer.zeroGrad();
  optimizer.dispose();
}

describe('writeSafetensors', () => {
  test.each([0, 1, 3, 8, 15, 23])(
    'has the values of the call, or refuses, when all change %d ms later',
    async (delay) => {
      const path = fresh();
      const tensors = manyTensors(1);
      const writing = writeSafetensors(path, tensors).then(
        () => 'written' as const,
        (error: unknown) => error,
      );
      if (delay > 0) await after(delay);
      for (const tensor of Object.values(tensors)) tensor.fill_(2);
      const outcome = await writing;
      if (outcome === 'written') {
        const file = await readSafetensors(path);
        for (const [, tensor] of await file.tensors()) {
          expect(tidy(() => tensor.eq(1).all().item())).toBe(true);
          tensor.dispose();
        }
        await file.close();
      } else {
        expect(outcome).toMatchObject(refusal);
        expect(existsSync(path)).toBe(false);
      }
      free(tensors);
    },
  );

  test.each<[string, (tensor: Tensor) => unknown]>([
    ['fill_', (tensor) => tensor.fill_(2)],
    ['a view', (tensor) => tidy(() => tensor.narrow(0, 7, 1).fill_(2))],
    ['a detached handle', (tensor) => tidy(() => tensor.detach().mul_(3))],
    ['a raw op', (tensor) => ops.aten.add_(tensor, 1)],
    ['dispose', (tensor) => tensor.dispose()],
  ])('refuses a tensor that is changed by %s at once', async (_, change) => {
    const path = fresh();
    const tensors = manyTensors(1);
    await writeSafetensors(path, { kept: tensors['t0'] as Tensor });
    const writing = writeSafetensors(path, tensors);
    change(tensors['t20'] as Tensor);
    await expect(writing).rejects.toMatchObject(refusal);
    const file = await readSafetensors(path);
    expect(file.names).toEqual(['kept']);
    await file.close();
    expect(readdirSync(root).filter((name) => name.endsWith('.tmp'))).toEqual([]);
    free(tensors);
  });

  test.each(['step', 'stepAsync'] as const)(
    'refuses weights that Adam.%s changes, or has those of the call',
    async (how) => {
      const path = fresh();
      const model = tinyModel(20);
      const before = memory().tensors;
      const state = model.stateDict();
      const values = JSON.stringify([...state.values()].map((tensor) => tensor.toArray()));
      const writing = writeSafetensors(path, state).then(
        () => 'written' as const,
        (error: unknown) => error,
      );
      await step(model, how);
      const outcome = await writing;
      if (how === 'stepAsync' && outcome === 'written') {
        // The other thread was slower than the writing.
        const file = await readSafetensors(path);
        const written = await file.tensors();
        const found = [...state.keys()].map((name) => written.get(name)?.toArray());
        expect(JSON.stringify(found)).toBe(values);
        for (const tensor of written.values()) tensor.dispose();
        await file.close();
      } else {
        expect(outcome).toMatchObject(refusal);
        expect(existsSync(path)).toBe(false);
      }
      for (const tensor of state.values()) tensor.dispose();
      expect(memory().tensors).toBe(before);
      model.dispose();
    },
  );

  test('of a copy does not mind', async () => {
    const path = fresh();
    const model = tinyModel(20);
    const copy = model.clone();
    const writing = writeSafetensors(path, copy.stateDict());
    await step(model, 'step');
    await writing;
    const again = tinyModel(20);
    const file = await readSafetensors(path);
    again.loadStateDict(await file.tensors());
    await file.close();
    expect(weightsOf(again)).toEqual(weightsOf(copy));
    for (const used of [model, copy, again]) used.dispose();
  });
});

test('saveModel refuses weights that change, and the old model stays', async () => {
  const folder = fresh();
  const model = tinyModel(20);
  await saveModel(folder, model, { training: { epoch: 1 } });
  const expected = weightsOf(model);
  const saving = expect(saveModel(folder, model, { training: { epoch: 2 } })).rejects;
  const refused = saving.toMatchObject(refusal);
  noGrad(() => model.generator.proj.weight.mul_(2));
  await refused;
  const loaded = await loadModel(folder);
  expect(loaded.config.training).toEqual({ epoch: 1 });
  expect(weightsOf(loaded.model)).toEqual(expected);
  for (const used of [model, loaded.model]) used.dispose();
});
