/** Files that nobody closes: they are closed with their object, without a warning or an error. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeSafetensors, tensor } from 'torchformer';
import { root, runNode } from './support.js';

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'torchformer-forgotten-'));
  const value = tensor([1, 2, 3]);
  await writeSafetensors(join(folder, 'a.safetensors'), { value });
  value.dispose();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('readSafetensors in a loop without close', () => {
  const script = join(folder, 'loop.mjs');
  writeFileSync(
    script,
    `
    import { readSafetensors } from '${root}dist/index.js';
    import { readdirSync } from 'node:fs';
    import { setTimeout as after } from 'node:timers/promises';
    const open = () => (process.platform === 'linux' ? readdirSync('/proc/self/fd').length : 0);
    const path = '${folder}/a.safetensors';
    const one = await readSafetensors(path);
    const before = open();
    async function forget(count) {
      const file = await readSafetensors(path);
      if (count % 2 === 0) (await file.tensor('value')).dispose();
    }
    for (let count = 0; count < 200; count++) await forget(count);
    const most = open();
    for (let turn = 0; turn < 100 && open() > before; turn++) {
      gc();
      await after(10);
    }
    const value = await one.tensor('value');
    console.log(JSON.stringify({ most: most - before, left: open() - before, value: value.toArray() }));
  `,
  );
  const { status, output, errors } = runNode(['--expose-gc', script]);
  expect(errors).toBe('');
  expect(status).toBe(0);
  const { most, left, value } = JSON.parse(output) as Record<string, unknown>;
  if (process.platform === 'linux') expect(most).toBeGreaterThan(0);
  expect({ left, value }).toEqual({ left: 0, value: [1, 2, 3] });
});
