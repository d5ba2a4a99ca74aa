import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  entryIn,
  library,
  placeAll,
  pythonWithWheel,
  version,
  wheelFiles,
  zip,
} from '../libtorchFiles.js';
import {
  environment,
  evaluate,
  root,
  runCommand,
  temporaryFolder,
  writeFiles,
} from '../support.js';

describe('torchformer setup', () => {
  it('fetches the pinned wheel with pip and unpacks what is needed into the cache', () => {
    const folder = temporaryFolder();
    const cache = join(folder, 'cache');
    const wheel = zip(folder, `torch-${version}-py3-none-any.whl`, wheelFiles(`${version}+cpu`));
    const changes = {
      TORCHFORMER_CACHE: cache,
      TORCHFORMER_PYTHON: pythonWithWheel(folder, wheel),
      TORCHFORMER_LIBTORCH: null,
      LIBTORCH: null,
    };
    const { status, errors } = runCommand(['setup'], changes);
    expect({ status, errors }).toMatchObject({ status: 0 });
    expect(readdirSync(cache)).toEqual([`libtorch-${version}-cpu`]);
    expect(readdirSync(join(entryIn(cache), 'torch')).sort()).toEqual([
      'include',
      'lib',
      'licenses',
      'version.py',
    ]);
    expect(readdirSync(join(entryIn(cache), 'torch/lib')).sort()).toEqual([
      'libc10.so',
      'libgomp.so.1',
      'libtorch_cpu.so',
    ]);
    expect(evaluate('searchLibtorch().found', changes).value).toMatchObject({
      place: 'setup cache (CPU)',
      version: `${version}+cpu`,
    });
  });

  it('does nothing when the cache has it', () => {
    const folder = temporaryFolder();
    const wheel = zip(folder, `torch-${version}-py3-none-any.whl`, wheelFiles(version));
    const changes = {
      TORCHFORMER_CACHE: join(folder, 'cache'),
      TORCHFORMER_PYTHON: pythonWithWheel(folder, wheel),
    };
    runCommand(['setup'], changes);
    const { status, errors } = runCommand(['setup'], changes);
    expect(status).toBe(0);
    expect(errors).toContain('already set up');
    expect(readFileSync(join(folder, 'fetched'), 'utf8')).toBe('fetched\n');
  });

  it('run twice at once fetches once, and both end well', async () => {
    const folder = temporaryFolder();
    const cache = join(folder, 'cache');
    const wheel = zip(folder, `torch-${version}-py3-none-any.whl`, wheelFiles(version));
    const changes = {
      TORCHFORMER_CACHE: cache,
      TORCHFORMER_PYTHON: pythonWithWheel(folder, wheel, 1),
    };
    const run = (): Promise<number | null> =>
      new Promise((resolve) => {
        const command = [join(root, 'bin/torchformer.js'), 'setup'];
        const options = { env: environment(changes), stdio: 'ignore' as const };
        spawn(process.execPath, command, options).on('exit', resolve);
      });
    expect(await Promise.all([run(), run()])).toEqual([0, 0]);
    expect(readFileSync(join(folder, 'fetched'), 'utf8')).toBe('fetched\n');
    expect(readdirSync(cache)).toEqual([`libtorch-${version}-cpu`]);
  });

  it('takes over from a set-up that was killed, and removes what it left', () => {
    const folder = temporaryFolder();
    const cache = join(folder, 'cache');
    const wheel = zip(folder, `torch-${version}-py3-none-any.whl`, wheelFiles(version));
    const dead = spawnSync('sh', ['-c', 'echo $$; hostname'], { encoding: 'utf8' }).stdout;
    const [pid, host] = dead.trim().split('\n');
    writeFiles(cache, {
      [`libtorch-${version}-cpu.lock`]: `${pid} ${host}`,
      [`.setup-${pid}-1-${host}/ready/torch/lib/libtorch_cpu.so`]: 'half of i',
    });
    const { status } = runCommand(['setup'], {
      TORCHFORMER_CACHE: cache,
      TORCHFORMER_PYTHON: pythonWithWheel(folder, wheel),
    });
    expect(status).toBe(0);
    expect(readdirSync(cache)).toEqual([`libtorch-${version}-cpu`]);
  });

  it('takes a folder where it is', () => {
    const folder = temporaryFolder();
    const cache = join(folder, 'cache');
    placeAll(join(folder, 'site-packages'), wheelFiles(version));
    const { status } = runCommand(['setup', '--from', join(folder, 'site-packages')], {
      TORCHFORMER_CACHE: cache,
    });
    expect(status).toBe(0);
    const { value } = evaluate('searchLibtorch().found.root', {
      TORCHFORMER_CACHE: cache,
      TORCHFORMER_LIBTORCH: null,
      LIBTORCH: null,
    });
    expect(value).toBe(join(folder, 'site-packages/torch'));
  });

  it('takes the official archive, with CUDA when asked', () => {
    const folder = temporaryFolder();
    const cache = join(folder, 'cache');
    const archive = zip(folder, 'libtorch.zip', {
      'libtorch/build-version': `${version}+cu130\n`,
      'libtorch/lib/libc10.so': library('c10'),
      'libtorch/lib/libtorch_cpu.so': library('cpu'),
      'libtorch/lib/libtorch_cuda.so': library('cuda'),
      'libtorch/lib/libcudart-abc.so.13': library('cudart'),
    });
    const { status } = runCommand(['setup', '--cuda', '--from', archive], {
      TORCHFORMER_CACHE: cache,
    });
    expect(status).toBe(0);
    expect(readdirSync(join(cache, `libtorch-${version}-cuda/torch/lib`)).sort()).toEqual([
      'libc10.so',
      'libcudart-abc.so.13',
      'libtorch_cpu.so',
      'libtorch_cuda.so',
    ]);
  });

  it.each([
    ['another version', '2.14.1+cpu', 'ERR_LIBTORCH_VERSION', '2.14.1+cpu'],
    ['a CPU build for --cuda', version, 'ERR_NATIVE_LOAD', 'libtorch_cuda.so'],
  ])('refuses %s and leaves the cache as it was', (_, wheelVersion, code, text) => {
    const folder = temporaryFolder();
    const cache = join(folder, 'cache');
    const files = wheelFiles(wheelVersion);
    delete files['torch/lib/libtorch_cuda.so'];
    const { status, errors } = runCommand(
      ['setup', '--cuda', '--from', zip(folder, 'a.whl', files)],
      {
        TORCHFORMER_CACHE: cache,
      },
    );
    expect(status).toBe(1);
    expect(errors).toContain(code);
    expect(errors).toContain(text);
    expect(readdirSync(cache)).toEqual([]);
  });

  it.each([
    ['a file that is no archive', { 'a.whl': 'no zip' }, 'a.whl cannot be unpacked'],
    ['a missing file', {}, 'a.whl does not exist'],
  ])('refuses %s', (_, files, text) => {
    const folder = temporaryFolder();
    writeFiles(folder, files);
    const { status, errors } = runCommand(['setup', '--from', join(folder, 'a.whl')], {
      TORCHFORMER_CACHE: join(folder, 'cache'),
    });
    expect(status).toBe(1);
    expect(errors).toContain(text);
  });

  it('refuses an archive that would write outside of its folder', () => {
    const folder = temporaryFolder();
    const archive = zip(folder, 'a.whl', {
      ...wheelFiles(version),
      'torch/include/../../../x': '',
    });
    const { status, errors } = runCommand(['setup', '--from', archive], {
      TORCHFORMER_CACHE: join(folder, 'cache'),
    });
    expect(status).toBe(1);
    expect(errors).toContain('unsafe path');
  });

  it.each(['/proc/x', '/dev/null/x', '/dev/null'])(
    'says that %s is no place for the cache',
    (cache) => {
      const { status, errors } = runCommand(['setup'], { TORCHFORMER_CACHE: cache });
      expect(status).toBe(1);
      expect(errors).toContain(`the cache folder ${cache} is not writable (E`);
      expect(errors).toContain('set TORCHFORMER_CACHE to a writable folder');
      expect(errors).toContain('[ERR_NATIVE_LOAD]');
    },
  );

  it('leaves a broken link of an earlier --from to be set up anew', () => {
    const folder = temporaryFolder();
    const cache = join(folder, 'cache');
    mkdirSync(entryIn(cache), { recursive: true });
    symlinkSync(join(folder, 'gone'), join(entryIn(cache), 'torch'));
    const wheel = zip(folder, `torch-${version}-py3-none-any.whl`, wheelFiles(version));
    const { status } = runCommand(['setup'], {
      TORCHFORMER_CACHE: cache,
      TORCHFORMER_PYTHON: pythonWithWheel(folder, wheel),
    });
    expect(status).toBe(0);
    expect(readFileSync(join(entryIn(cache), 'torch/lib/libtorch_cpu.so'), 'utf8')).toMatch(/cpu$/);
  });
});
