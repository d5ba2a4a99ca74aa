/** The blocks of TypeScript in README.md and the guides: found, and run page by page. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import ts from 'typescript';
import { root, runNode } from '../process/support.js';

const guides = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'));

/** README.md and all guides, as paths from the root. */
export const pages: readonly string[] = ['README.md', ...guides.map((name) => `docs/${name}`)];

export function textOf(page: string): string {
  return readFileSync(join(root, page), 'utf8');
}

export function examplesOf(page: string): string[] {
  return [...textOf(page).matchAll(/```ts\n([\s\S]*?)```/g)].map(([, text]) => text as string);
}

/** What an example says that it prints, line by line: `console.log(…); // this`. */
export function promisedBy(example: string): string[] {
  return [...example.matchAll(/console\.log\(.*\); \/\/ (.*)/g)].map(([, text]) => text as string);
}

/** A folder inside the repository, so that the package's own name resolves. */
export function makeFolder(): string {
  mkdirSync(join(root, 'build'), { recursive: true });
  return mkdtempSync(join(root, 'build/readme-'));
}

/** Writes the examples of all pages as modules; returns their paths. */
export function writeExamples(folder: string): string[] {
  return pages.flatMap((page) =>
    examplesOf(page).map((example, index) => {
      const file = join(folder, `${page.replaceAll(/\W/g, '-')}-${index + 1}.mts`);
      writeFileSync(file, example);
      return file;
    }),
  );
}

/** What one example did. */
export interface ExampleOutcome {
  readonly printed: readonly string[];
  readonly fault: string;
}

const endOfExample = '\u0004';

/**
 * Runs the examples of a page one after the other in one process, which opens libtorch once.
 * An example that throws does not keep the next from running.
 */
export function runPage(page: string, folder: string): ExampleOutcome[] {
  const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
  const lines = examplesOf(page).map((example, index) => {
    const file = join(folder, `run${index + 1}.mjs`);
    writeFileSync(file, ts.transpileModule(example, { compilerOptions: options }).outputText);
    return `await run(${JSON.stringify(file)});`;
  });
  const main = join(folder, 'main.mjs');
  writeFileSync(
    main,
    `const run = async (file) => {
      let fault = '';
      await import(file).catch((error) => { fault = error.stack; });
      console.log(${JSON.stringify(endOfExample)} + JSON.stringify(fault));
    };
    ${lines.join('\n')}`,
  );
  const { status, output, errors } = runNode([main], {}, folder);
  const parts = stripVTControlCharacters(output).split(endOfExample);
  return lines.map((_line, index) => {
    const printed = parts[index]?.replace(/^"[^\n]*"\n/, '') ?? '';
    const told = /^"[^\n]*"/.exec(parts[index + 1] ?? '')?.[0];
    const fault =
      told === undefined
        ? `the page ended with ${status}: ${errors}`
        : (JSON.parse(told) as string);
    return { printed: printed.trim().split('\n'), fault };
  });
}
