/** The package as TypeScript sees it from another project, by its `exports`. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runNode } from '../process/support.js';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '..', '..');
let project = '';

beforeAll(() => {
  mkdirSync(join(root, 'build'), { recursive: true });
  project = mkdtempSync(join(root, 'build/consumer-'));
  writeFileSync(join(project, 'package.json'), '{ "name": "consumer", "private": true }');
  mkdirSync(join(project, 'node_modules'));
  symlinkSync(root, join(project, 'node_modules/torchformer'), 'dir');
  for (const name of ['esm.mts', 'cjs.cts']) {
    copyFileSync(join(here, 'consumers', name), join(project, name));
  }
  copyFileSync(join(here, 'consumers/esm.mts'), join(project, 'bundled.ts'));
});

afterAll(() => rmSync(project, { recursive: true }));

const common: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  strict: true,
  exactOptionalPropertyTypes: true,
  noEmit: true,
  // The declarations themselves have to be right under the user's settings too.
  skipLibCheck: false,
  types: ['node'],
};

/** `file:line message` of each error in the consumer's files and in the package's declarations. */
function errorsIn(files: readonly string[], options: ts.CompilerOptions): string[] {
  const names = files.map((name) => join(project, name));
  const program = ts.createProgram(names, { ...common, ...options });
  expect(
    program.getSourceFiles().some(({ fileName }) => /dist\/index\.d\.c?ts$/.test(fileName)),
  ).toBe(true);
  return ts
    .getPreEmitDiagnostics(program)
    .filter(({ file }) => !/\/node_modules\/(?!torchformer\/)/.test(file?.fileName ?? ''))
    .map(({ file, start = 0, messageText }) => {
      const line = file === undefined ? 0 : file.getLineAndCharacterOfPosition(start).line + 1;
      return `${file?.fileName ?? ''}:${line} ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
    });
}

describe('the types serve', () => {
  const { ModuleKind, ModuleResolutionKind } = ts;
  it.each([
    ['node16', ModuleKind.Node16, ModuleResolutionKind.Node16],
    ['nodenext', ModuleKind.NodeNext, ModuleResolutionKind.NodeNext],
  ])('ES modules and CommonJS under %s', (_name, module, moduleResolution) => {
    expect(errorsIn(['esm.mts', 'cjs.cts'], { module, moduleResolution })).toEqual([]);
  });

  it('a bundler', () => {
    const options = { module: ModuleKind.Preserve, moduleResolution: ModuleResolutionKind.Bundler };
    expect(errorsIn(['bundled.ts'], options)).toEqual([]);
  });
});

describe('import and require give', () => {
  const script = `
    const { createRequire } = require('node:module');
    (async () => {
      const required = require('torchformer');
      const imported = await import('torchformer');
      const { Tensor, memory, ones } = required;
      const made = imported.ones([2]);
      console.log(JSON.stringify({
        same: required.Tensor === imported.Tensor && required.seed000 === imported.seed000,
        names: Object.keys(required).length === Object.keys(imported).length,
        instance: made instanceof Tensor,
        counted: memory().tensors,
      }));
    })();
  `;

  it('one copy of everything', () => {
    writeFileSync(join(project, 'both.cjs'), script);
    const { status, output, errors } = runNode([join(project, 'both.cjs')], {}, project);
    expect(status, errors).toBe(0);
    expect(errors).toBe('');
    expect(JSON.parse(output)).toEqual({ same: true, names: true, instance: true, counted: 1 });
  });
});

it('publint and arethetypeswrong find nothing in the packed package', () => {
  const packed = spawnSync(
    'npm',
    ['pack', '--ignore-scripts', '--silent', '--pack-destination', project],
    { cwd: root, encoding: 'utf8' },
  );
  expect(packed.status, packed.stderr).toBe(0);
  const { status, errors } = runNode([
    'scripts/checkPackage.cjs',
    join(project, packed.stdout.trim()),
  ]);
  expect(status, errors).toBe(0);
});
