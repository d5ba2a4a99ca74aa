import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import ts from 'typescript';
import { afterAll, describe, expect, it } from 'vitest';
import { root, runNode } from '../process/support.js';

// Inside the repository, so that the package's own name resolves.
const folder = mkdtempSync(join(root, 'build/readme-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const guides = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'));
const pages = ['README.md', ...guides.map((name) => `docs/${name}`)];
const texts = new Map(pages.map((page) => [page, readFileSync(join(root, page), 'utf8')]));
const readme = texts.get('README.md') as string;

function examplesOf(text: string): string[] {
  return [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, example]) => example as string);
}

describe.each(pages)('%s', (page) => {
  const examples = examplesOf(texts.get(page) as string);

  it.each(examples.map((example, index) => ({ index: index + 1, example })))(
    'example $index runs as printed and prints what it says',
    ({ index, example }) => {
      const promised = [...example.matchAll(/console\.log\(.*\); \/\/ (.*)/g)].map(
        ([, text]) => text,
      );
      const file = join(folder, `example${index}.mjs`);
      const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
      writeFileSync(file, ts.transpileModule(example, { compilerOptions: options }).outputText);
      const { status, output, errors } = runNode([file], {}, folder);
      expect(status, errors).toBe(0);
      expect(stripVTControlCharacters(output).trim().split('\n')).toEqual(promised);
    },
  );
});

it('the example in README.md has 20 lines at most, so that it can be read at a glance', () => {
  const lines = (examplesOf(readme)[0] ?? '').split('\n').filter((line) => line.trim() !== '');
  expect(lines.length).toBeGreaterThan(5);
  expect(lines.length).toBeLessThanOrEqual(20);
});

it('every script that README.md and CONTRIBUTING.md name exists', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const pages = readme + readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8');
  const named = [...pages.matchAll(/npm run ([\w:-]+)/g)].map(([, name]) => name as string);
  expect(named).toContain('demo');
  for (const name of named) expect(scripts, `npm run ${name}`).toHaveProperty(name);
});
