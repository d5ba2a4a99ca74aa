#!/usr/bin/env node
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const main = new URL('../dist/cli/main.js', import.meta.url);
if (existsSync(fileURLToPath(main))) {
  const { runCommandLine } = await import(main.href);
  process.exitCode = await runCommandLine(process.argv.slice(2));
} else {
  console.error('torchformer: dist/ is missing; in a checkout, run `npm run build` first');
  process.exitCode = 1;
}
