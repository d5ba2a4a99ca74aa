/**
 * `npm run api`: writes api/report.md, the public API as the compiled declarations have it, and
 * lib/index.cts, the entry for `require`, whose list of types follows from it.
 *
 *     node scripts/api.mjs           compiles, writes both
 *     node scripts/api.mjs --check   compiles; exit code 1 and the lines that differ, if any
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { differentLines } from './apiDifference.mjs';
import { apiFiles, readSurface } from './apiSurface.mjs';

const require = createRequire(import.meta.url);
const { compileTypeScript } = require('./common.cjs');
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');

compileTypeScript();
for (const [name, text] of await apiFiles(readSurface())) {
  const file = path.join(root, name);
  const current = existsSync(file) ? readFileSync(file, 'utf8') : '';
  if (current === text) continue;
  if (process.argv.includes('--check')) {
    console.error(`${name} is not what the declarations say (- in the file, + now):`);
    console.error(differentLines(current, text).join('\n'));
    console.error('If the change is meant: npm run api, and look at what it does to the version.');
    process.exitCode = 1;
  } else {
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
    console.error(`wrote ${name}`);
  }
}
// The entry that was just written is compiled as well.
if (!process.argv.includes('--check')) compileTypeScript();
