import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root, temporaryFolder } from './support.js';

/** Starts processes that all try to lock a folder at one moment; what each of them found. */
async function contend(folder: string, count: number): Promise<string[]> {
  const start = Date.now() + 700;
  const script = `
    import { lockRun } from '${root}dist/train/run/runLock.js';
    await new Promise((resolve) => setTimeout(resolve, ${start} - Date.now()));
    try {
      const lock = await lockRun(${JSON.stringify(folder)}, 'it');
      await new Promise((resolve) => setTimeout(resolve, 700));
      await lock.check();
      await lock.release();
      console.log('got it');
    } catch (error) {
      console.log(error.code + ' ' + error.message);
    }
  `;
  return Promise.all(
    Array.from({ length: count }, async () => {
      const child = spawn(process.execPath, ['--input-type=module', '-e', script]);
      let output = '';
      child.stdout.on('data', (chunk: Buffer) => (output += String(chunk)));
      child.stderr.on('data', (chunk: Buffer) => (output += String(chunk)));
      await once(child, 'close');
      return output.trim();
    }),
  );
}

describe('the lock of a training', () => {
  it('that was left behind goes to exactly one of those who find it', async () => {
    for (let round = 0; round < 4; round++) {
      const folder = temporaryFolder();
      const lock = join(folder, '.training.lock');
      writeFileSync(lock, `${2 ** 31 - 1} ${hostname()}`);
      const outcomes = await contend(folder, 6);
      const [first, ...others] = outcomes.sort(
        (a, b) => Number(b === 'got it') - Number(a === 'got it'),
      );
      expect(first).toBe('got it');
      for (const other of others) {
        expect(other).toMatch(/^ERR_CHECKPOINT it: .* is training in this folder; choose another/);
      }
      expect(existsSync(lock)).toBe(false);
    }
  });

  it('of another host that touches it is respected', async () => {
    const folder = temporaryFolder();
    const lock = join(folder, '.training.lock');
    writeFileSync(lock, '17 another-host');
    const touching = setInterval(() => utimesSync(lock, new Date(), new Date()), 1000);
    try {
      const [outcome] = await contend(folder, 1);
      expect(outcome).toMatch(/^ERR_CHECKPOINT it: process 17 on another-host is training in/);
      expect(readFileSync(lock, 'utf8')).toBe('17 another-host');
    } finally {
      clearInterval(touching);
    }
  });

  it('is held against another thread of the process', async () => {
    const folder = temporaryFolder();
    const script = `
      import { Worker } from 'node:worker_threads';
      import { lockRun } from '${root}dist/train/run/runLock.js';
      const lock = await lockRun(${JSON.stringify(folder)}, 'it');
      const code = \`
        import('${root}dist/train/run/runLock.js')
          .then(({ lockRun }) => lockRun(${JSON.stringify(folder)}, 'it'))
          .then(() => console.log('got it'), (error) => console.log(error.message));
      \`;
      await new Promise((resolve) => new Worker(code, { eval: true }).on('exit', resolve));
      await lock.release();
    `;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script]);
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += String(chunk)));
    await once(child, 'close');
    expect(output).toBe(
      'it: another Trainer in this process is training in this folder; choose another one\n',
    );
  });
});
