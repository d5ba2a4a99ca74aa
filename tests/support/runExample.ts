/** Runs a script of examples/ in a new process. */
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { root, runNode } from '../process/support.js';

/** A new folder inside the repository, so that the package's own name resolves. */
export function exampleFolder(): string {
  mkdirSync(join(root, 'build'), { recursive: true });
  return mkdtempSync(join(root, 'build/example-'));
}

/**
 * @param folder for the compiled script
 * @param name of the file in examples/, without its extension
 */
export function runExample(folder: string, name: string, ...args: string[]) {
  const source = readFileSync(join(root, `examples/${name}.ts`), 'utf8');
  const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
  const script = join(folder, `${name}.mjs`);
  writeFileSync(script, ts.transpileModule(source, { compilerOptions: options }).outputText);
  return runNode([script, ...args]);
}
