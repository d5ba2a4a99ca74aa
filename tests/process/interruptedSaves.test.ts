import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadModel, readSafetensors } from 'torchformer';
// Internal: the way without exchange can be tried on no common file system.
import { readFolder } from '../../dist/io/replaceFolder.js';

const child = (name: string) => fileURLToPath(new URL(`./children/${name}`, import.meta.url));
const replaceFolderUrl = new URL('../../dist/io/replaceFolder.js', import.meta.url).href;

let root: string;
let folder: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'torchformer-saves-'));
  folder = join(root, 'model');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Starts a child that saves without end, and kills it some time after its first save. */
async function killWhileSaving(args: string[], delay: number): Promise<void> {
  const saver = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const exit = new Promise<NodeJS.Signals | null>((resolve) =>
    saver.on('exit', (_code, signal) => resolve(signal)),
  );
  await new Promise((resolve) => saver.stdout.once('data', resolve));
  await sleep(delay);
  saver.kill('SIGKILL');
  expect(await exit).toBe('SIGKILL');
}

/** The one value in all weights, which must be that of the config. */
async function expectWholeModel(): Promise<void> {
  const { model, config } = await loadModel(folder);
  const value = config.training?.['value'];
  expect([1, 2]).toContain(value);
  for (const parameter of model.parameters()) {
    expect(new Set(parameter.data() as Float32Array)).toEqual(new Set([value]));
  }
  model.dispose();
}

describe('a process that is killed while it saves', () => {
  test('leaves the old or the new model, 15 times out of 15', async () => {
    for (let round = 0; round < 15; round++) {
      // Spread over the few milliseconds that one save takes.
      await killWhileSaving([child('saveModels.mjs'), folder], (round * 37) % 60);
      await expectWholeModel();
    }
    const finished = spawnSync(process.execPath, [child('saveModels.mjs'), folder, '1']);
    expect(finished.status).toBe(0);
    // The next save has cleaned up behind the killed ones.
    expect(readdirSync(root)).toEqual(['model']);
  });

  test('leaves the old or the new folder also where two renames are needed', async () => {
    for (let round = 0; round < 20; round++) {
      await killWhileSaving(
        [child('replaceTexts.mjs'), replaceFolderUrl, folder],
        (round * 7) % 23,
      );
      const [a, b] = await readFolder(
        folder,
        async (path) =>
          [
            await readFile(join(path, 'a'), 'utf8'),
            await readFile(join(path, 'b'), 'utf8'),
          ] as const,
        async () => undefined,
      );
      expect(a).toMatch(/^\d+$/);
      expect(b).toBe(a);
    }
  });

  test('and a reader beside it never sees a mixture', async () => {
    const args = [child('replaceTexts.mjs'), replaceFolderUrl, folder];
    const saver = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      await new Promise((resolve) => saver.stdout.once('data', resolve));
      const seen = new Set<string>();
      for (let round = 0; round < 200; round++) {
        const [a, b] = await readFolder(
          folder,
          async (path) => {
            const first = await readFile(join(path, 'a'), 'utf8');
            await sleep(1);
            return [first, await readFile(join(path, 'b'), 'utf8')] as const;
          },
          async () => undefined,
        );
        expect(b).toBe(a);
        seen.add(a);
      }
      expect(seen.size).toBeGreaterThan(1);
    } finally {
      saver.kill('SIGKILL');
    }
  });
});

describe('a disk that takes no more', () => {
  test('makes the save an error and leaves the old model', async () => {
    expect(spawnSync(process.execPath, [child('saveModels.mjs'), folder, '1']).status).toBe(0);
    const before = statSync(join(folder, 'model.safetensors')).ino;
    // A limit on the size of files stops the writing in the middle, as a full disk does.
    const { status, stderr } = spawnSync(
      'bash',
      [
        '-c',
        'ulimit -f 200; exec "$@"',
        'bash',
        process.execPath,
        child('saveModels.mjs'),
        folder,
        '2',
      ],
      { encoding: 'utf8' },
    );
    expect(status).toBe(1);
    expect(stderr).toContain('ERR_CHECKPOINT');
    expect(stderr).toMatch(/cannot save .*model: the file would be larger than the system allows/);
    expect(stderr).toContain('what was there before is unchanged');
    expect(statSync(join(folder, 'model.safetensors')).ino).toBe(before);
    expect(readdirSync(root)).toEqual(['model']);
    await expectWholeModel();
  });

  // A file system of 1 MB needs the right to mount one, at least in a namespace of its own.
  const canMount =
    spawnSync('unshare', ['-Urm', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir()]).status === 0;

  test.skipIf(!canMount)(
    'that is really full, too (skipped where no file system can be mounted)',
    async () => {
      const script = [
        'mount -t tmpfs -o size=1m tmpfs "$1"',
        '"$2" "$3" "$1/model" 1 || exit 9',
        'head -c 600000 /dev/zero > "$1/filler"',
        '"$2" "$3" "$1/model" 2; echo "rc $?"',
        'ls -A "$1"; cp -r "$1/model" "$4"',
      ].join('\n');
      const mountPoint = mkdtempSync(join(root, 'mnt-'));
      const copy = join(root, 'model');
      const result = spawnSync(
        'unshare',
        [
          '-Urm',
          'bash',
          '-c',
          script,
          'bash',
          mountPoint,
          process.execPath,
          child('saveModels.mjs'),
          copy,
        ],
        { encoding: 'utf8' },
      );
      expect(result.stderr).toMatch(/cannot save .*model: no space left on the device/);
      expect(result.stdout).toContain('rc 1\nfiller\nmodel\n');
      await expectWholeModel();
      const file = await readSafetensors(join(copy, 'model.safetensors'));
      await file.close();
      expect(readFileSync(join(copy, 'config.json'), 'utf8')).toContain('"value": 1');
    },
  );
});
