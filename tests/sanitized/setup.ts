/** In every test file under the sanitizers: the addon loaded has to be the sanitized one. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { root } from '../process/support.js';

/** The files mapped into this process whose path ends so. */
function mapped(ending: RegExp): string[] {
  const paths = readFileSync('/proc/self/maps', 'utf8')
    .split('\n')
    .map((line) => line.slice(line.indexOf('/')))
    .filter((path) => ending.test(path));
  return [...new Set(paths)];
}

afterAll(() => {
  expect(mapped(/\/libasan\.so[.\d]*$/)).toHaveLength(1);
  const addons = mapped(/\/torchformer\.node$/);
  // A file that computes nothing has not loaded it.
  if (addons.length > 0) expect(addons).toEqual([join(root, 'build/asan/torchformer.node')]);
});
