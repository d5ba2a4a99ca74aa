import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../process/support.js';

const script = fileURLToPath(new URL('run.mjs', import.meta.url));

/** Other numbers and seeds: `npm run test:fuzz -- <cases> <seed>`. */
const count = Number(process.env['TORCHFORMER_FUZZ_CASES'] ?? 10_000);
const seed = Number(process.env['TORCHFORMER_FUZZ_SEED'] ?? 1);

it(
  `${count} random calls of the typed API and of torchformer::* give a value or an ordinary error`,
  { timeout: 1_800_000 },
  () => {
    console.log(`fuzzing with seed ${seed}`);
    const progress = join(temporaryFolder(), 'progress');
    const args = [script, '--seed', String(seed), '--count', String(count), '--progress', progress];
    const { status, signal, stdout, stderr } = spawnSync(process.execPath, args, {
      encoding: 'utf8',
      maxBuffer: 1e9,
    });
    const running = readFileSync(progress, 'utf8').trim();
    const again = `node tests/fuzz/run.mjs --seed ${seed} --first ${running} --count 1`;
    const end = `ended by ${signal ?? `exit code ${status}`} in case ${running}: ${again}`;
    expect(status, `${end}\n${stdout}\n${stderr}`).toBe(0);
    // It has come to its end, and it is the package that was tried, not its refusals alone.
    const summary = new RegExp(
      `${count} calls from number 0 with seed ${seed}: (\\d+) gave a value`,
    );
    expect(Number(summary.exec(stdout)?.[1])).toBeGreaterThan(count / 5);
  },
);
