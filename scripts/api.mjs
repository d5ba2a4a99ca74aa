/**
 * `npm run api`: writes api/report.md and api/serve.md, the public API according to the compiled
 * declarations, and lib/index.cts and lib/serve/index.cts, the entry points for `require`, whose lists
 * of types are derived from it.
 *
 *     node scripts/api.mjs           compiles and writes both files
 *     node scripts/api.mjs --check   compiles; prints lines that differ and exits with code 1 if any
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { differentLines } from './apiDifference.mjs';
import { apiFiles } from './apiSurface.mjs';

const require = createRequire(import.meta.url);
const { compileTypeScript } = require('./common.cjs');
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');

compileTypeScript();
for (const [name, text] of await apiFiles()) {
  const file = path.join(root, name);
  const current = existsSync(file) ? readFileSync(file, 'utf8') : '';
  if (current === text) continue;
  if (process.argv.includes('--check')) {
    console.error(`${name} does not match the declarations (- in the file, + now):`);
    console.error(differentLines(current, text).join('\n'));
    console.error(
      'If the change is intended, run npm run api, and check what it means for the version.',
    );
    process.exitCode = 1;
  } else {
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
    console.error(`wrote ${name}`);
  }
}
// Compile the entry point that was just written as well.
if (!process.argv.includes('--check')) compileTypeScript();
