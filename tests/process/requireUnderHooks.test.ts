/** `require` where loader hooks are at work, as those of tsx are. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root, runNode } from './support.js';

/**
 * Hands the sources of CommonJS modules on, so that Node.js loads them as it loads ES modules, and
 * marks what they require, as tsx does.
 */
const hooks = `
  import { readFileSync } from 'node:fs';
  export async function resolve(specifier, context, next) {
    const resolved = await next(specifier, context);
    const marked = resolved.url.startsWith('file:') && context.parentURL?.includes('.cjs');
    return marked ? { ...resolved, url: resolved.url + '?required' } : resolved;
  }
  export async function load(url, context, next) {
    const loaded = await next(url, context);
    if (loaded.format !== 'commonjs') return loaded;
    return { ...loaded, source: readFileSync(new URL(url), 'utf8') };
  }
`;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'torchformer-hooks-'));
  const url = `data:text/javascript,${encodeURIComponent(hooks)}`;
  writeFileSync(
    join(folder, 'register.mjs'),
    `import { register } from 'node:module'; register(${JSON.stringify(url)});`,
  );
  writeFileSync(
    join(folder, 'program.cjs'),
    `const torchformer = require('${root}dist/index.cjs');
    console.log(torchformer.ones([2]).sum().item());`,
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each([
  ['with hooks', ['--import', 'register.mjs']],
  ['without', []],
])('%s loads the package', (_, flags) => {
  const args = [...flags, 'program.cjs'].map((arg) =>
    arg === '--import' ? arg : join(folder, arg),
  );
  expect(runNode(args)).toEqual({ status: 0, output: '2\n', errors: '' });
});
