#!/usr/bin/env node
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

// Without a listener, Node.js opens its debugger on SIGUSR1, with which batch systems warn of the end of a
// job. Until a command listens itself, the signal ends the process, as in other programs.
process.on('SIGUSR1', () => {
  if (process.listenerCount('SIGUSR1') === 1) process.exit(128 + constants.signals.SIGUSR1);
});

const main = new URL('../dist/cli/main.js', import.meta.url);
if (existsSync(fileURLToPath(main))) {
  const { runCommandLine } = await import(main.href);
  process.exitCode = await runCommandLine(process.argv.slice(2));
} else {
  console.error('torchformer: dist/ is missing; in a checkout, run `npm run build` first');
  process.exitCode = 1;
}
