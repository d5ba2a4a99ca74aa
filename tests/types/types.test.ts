import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect, it } from 'vitest';

const folder = dirname(fileURLToPath(import.meta.url));
const configFile = join(folder, '..', 'tsconfig.json');
const files = readdirSync(folder)
  .filter((name) => name.endsWith('.types.ts'))
  .map((name) => join(folder, name));

/** `file:line message` of each error that TypeScript finds in the files. */
function typeErrors(fileNames: string[]): string[] {
  const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => undefined };
  const config = ts.getParsedCommandLineOfConfigFile(configFile, {}, host);
  const program = ts.createProgram(fileNames, config?.options ?? {});
  return ts.getPreEmitDiagnostics(program).map(({ file, start = 0, messageText }) => {
    const line = file === undefined ? 0 : file.getLineAndCharacterOfPosition(start).line + 1;
    return `${file?.fileName ?? ''}:${line} ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
  });
}

it('the public types are as the files here say', () => {
  expect(files.length).toBeGreaterThan(0);
  expect(typeErrors(files)).toEqual([]);
});
