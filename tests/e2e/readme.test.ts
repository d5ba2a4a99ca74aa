import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root } from '../process/support.js';
import {
  examplesOf,
  makeFolder,
  pages,
  promisedBy,
  runPage,
  textOf,
  writeExamples,
  type ExampleOutcome,
} from './examplesInPages.js';

const folder = makeFolder();
afterAll(() => {
  rmSync(folder, { recursive: true });
});

// Of troubleshooting, another test sees that its errors are the real ones.
const withExamples = pages.filter((page) => page !== 'docs/troubleshooting.md');

describe.each(withExamples)('%s', (page) => {
  const examples = examplesOf(page);
  let outcomes: ExampleOutcome[] = [];
  beforeAll(() => {
    outcomes = runPage(page, folder);
  });

  it('has an example', () => {
    expect(examples.length).toBeGreaterThan(0);
  });

  it.each(examples.map((example, index) => ({ number: index + 1, example })))(
    'example $number runs as printed and prints what it says',
    ({ number, example }) => {
      const { printed, fault } = outcomes[number - 1] as ExampleOutcome;
      expect(fault).toBe('');
      expect(printed).toEqual(promisedBy(example));
    },
  );
});

it('TypeScript finds no fault in the examples, under strict settings', () => {
  const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => undefined };
  const config = ts.getParsedCommandLineOfConfigFile(join(root, 'tests/tsconfig.json'), {}, host);
  const options = { ...config?.options, noUnusedLocals: false };
  const program = ts.createProgram(writeExamples(folder), options);
  const faults = ts.getPreEmitDiagnostics(program).map(({ file, start = 0, messageText }) => {
    const line = file === undefined ? 0 : file.getLineAndCharacterOfPosition(start).line + 1;
    return `${file?.fileName ?? ''}:${line} ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
  });
  expect(faults).toEqual([]);
});

it('every guide is a page of the documentation site', () => {
  const { projectDocuments } = JSON.parse(readFileSync(join(root, 'typedoc.json'), 'utf8')) as {
    projectDocuments: string[];
  };
  for (const page of pages.slice(1)) expect(projectDocuments).toContain(page);
});

it('every guide is named in README.md', () => {
  for (const page of pages.slice(1)) expect(textOf('README.md')).toContain(`(${page})`);
});

it('the example in README.md has 20 lines at most, so that it can be read at a glance', () => {
  const [first = ''] = examplesOf('README.md');
  const lines = first.split('\n').filter((line) => line.trim() !== '');
  expect(lines.length).toBeGreaterThan(5);
  expect(lines.length).toBeLessThanOrEqual(20);
});

it('every script that README.md, CONTRIBUTING.md and the guides name exists', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const texts = [...pages, 'CONTRIBUTING.md'].map(textOf).join('\n');
  const named = [...texts.matchAll(/npm run ([\w:-]+)/g)].map(([, name]) => name as string);
  expect(named).toContain('demo');
  for (const name of named) expect(scripts, `npm run ${name}`).toHaveProperty(name);
});
