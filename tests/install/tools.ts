/** The programs that the installation tests use, as `scripts/testInstall.cjs` put them down. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../process/support.js';

const folder = join(root, 'build/install-tools/node_modules');

/** A file of one of the tools. */
export function tool(path: string): string {
  const file = join(folder, path);
  if (!existsSync(file)) throw new Error(`${file} is missing; run \`npm run test:install\``);
  return file;
}

/** npm, as a script to run with any Node. */
export function npmScript(): string {
  return tool('npm/bin/npm-cli.js');
}

/** Other versions of Node.js: their names, such as `node-22`. */
export function otherNodes(): string[] {
  return readdirSync(folder).filter((name) => /^node-\d+$/.test(name));
}
