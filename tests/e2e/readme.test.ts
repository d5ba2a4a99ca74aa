import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { root, runNode } from '../process/support.js';

const readme = readFileSync(join(root, 'README.md'), 'utf8');
// Inside the repository, so that the package's own name resolves.
const folder = mkdtempSync(join(root, 'build/readme-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

it('the example in README.md runs as printed and prints what it says', () => {
  const example = /```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? '';
  const promised = /console\.log\(.*\); \/\/ (.*)/.exec(example)?.[1];
  const file = join(folder, 'example.mjs');
  writeFileSync(file, example);
  const { status, output, errors } = runNode([file], {}, folder);
  expect(status, errors).toBe(0);
  expect(output.trim()).toBe(promised);
});

it('the example in README.md has 20 lines at most, so that it can be read at a glance', () => {
  const example = /```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? '';
  const lines = example.split('\n').filter((line) => line.trim() !== '');
  expect(lines.length).toBeLessThanOrEqual(20);
});

it('every script that README.md and CONTRIBUTING.md name exists', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const texts = readme + readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8');
  const named = [...texts.matchAll(/npm run ([\w:-]+)/g)].map(([, name]) => name as string);
  expect(named).toContain('demo');
  for (const name of named) expect(scripts, `npm run ${name}`).toHaveProperty(name);
});
