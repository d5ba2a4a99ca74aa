import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { environment, evaluate, root, runCommand, temporaryFolder, writeFiles } from './support.js';

const version = '2.13.0';
const python = process.env['TORCHFORMER_PYTHON'] ?? 'python3';

/** What a wheel of torch holds, as far as set-up cares, and some that it must leave out. */
function wheelFiles(wheelVersion: string): Record<string, string> {
  return {
    'torch/version.py': `__version__ = '${wheelVersion}'\n`,
    'torch/__init__.py': '',
    'torch/lib/libc10.so': 'c10',
    'torch/lib/libtorch_cpu.so': 'cpu',
    'torch/lib/libgomp.so.1': 'gomp',
    'torch/lib/libtorch_cuda.so': 'cuda',
    'torch/lib/libtorch_python.so': 'python',
    'torch/include/torch/headeronly/version.h': '',
    [`torch-${wheelVersion}.dist-info/METADATA`]: 'Name: torch\nRequires-Dist: filelock\n',
    [`torch-${wheelVersion}.dist-info/licenses/LICENSE`]: 'terms',
  };
}

function zip(folder: string, name: string, files: Readonly<Record<string, string>>): string {
  const archive = join(folder, name);
  const script =
    'import json, sys, zipfile\n' +
    'with zipfile.ZipFile(sys.argv[1], "w") as z:\n' +
    '    for n, c in json.load(sys.stdin).items(): z.writestr(n, c)';
  const { status, stderr } = spawnSync(python, ['-c', script, archive], {
    input: JSON.stringify(files),
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr);
  return archive;
}

/** A Python that behaves like the real one, but whose pip copies a wheel instead of fetching it. */
function pythonWithWheel(folder: string, wheel: string, delay = 0): string {
  const file = join(folder, 'python');
  writeFiles(folder, {
    python:
      '#!/bin/sh\n' +
      'if [ "$2" = pip ]; then\n' +
      '  while [ "$1" != --dest ]; do shift; done\n' +
      `  echo fetched >> '${folder}/fetched'; sleep ${delay}; exec cp '${wheel}' "$2"\n` +
      'fi\n' +
      `exec ${python} "$@"\n`,
  });
  spawnSync('chmod', ['755', file]);
  return file;
}

const entry = (cache: string): string => join(cache, `libtorch-${version}-cpu`);

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
    expect(readdirSync(join(entry(cache), 'torch')).sort()).toEqual([
      'include',
      'lib',
      'licenses',
      'version.py',
    ]);
    expect(readdirSync(join(entry(cache), 'torch/lib')).sort()).toEqual([
      'libc10.so',
      'libgomp.so.1',
      'libtorch_cpu.so',
    ]);
    expect(evaluate('searchLibtorch().found', changes).value).toMatchObject({
      place: 'set-up cache (CPU)',
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
    expect(errors).toContain('set up already');
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
      [`.setup-${pid}-1/ready/torch/lib/libtorch_cpu.so`]: 'half of i',
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
    writeFiles(join(folder, 'site-packages'), wheelFiles(version));
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
      'libtorch/lib/libc10.so': 'c10',
      'libtorch/lib/libtorch_cpu.so': 'cpu',
      'libtorch/lib/libtorch_cuda.so': 'cuda',
      'libtorch/lib/libcudart-abc.so.13': 'cudart',
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

  it('takes a URL with the right checksum, and nothing with a wrong one', async () => {
    const folder = temporaryFolder();
    const cache = join(folder, 'cache');
    const content = readFileSync(zip(folder, 'torch.whl', wheelFiles(version)));
    const server = createServer((_, response) => response.end(content)).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/torch.whl`;
    const setup = async (...args: string[]): Promise<[number | null, string]> => {
      const child = spawn(
        process.execPath,
        [join(root, 'bin/torchformer.js'), 'setup', '--from', url, ...args],
        { env: environment({ TORCHFORMER_CACHE: cache }), stdio: ['ignore', 'ignore', 'pipe'] },
      );
      let errors = '';
      child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
      return [await new Promise((resolve) => child.on('close', resolve)), errors];
    };

    const [unchecked, need] = await setup();
    expect(unchecked).toBe(1);
    expect(need).toContain('sha256');
    const [wrong, mismatch] = await setup('--sha256', '0'.repeat(64));
    expect(wrong).toBe(1);
    expect(mismatch).toContain(`expected ${'0'.repeat(64)}`);
    expect(readdirSync(cache)).toEqual([]);
    const digest = createHash('sha256').update(content).digest('hex');
    expect((await setup('--sha256', digest))[0]).toBe(0);
    expect(existsSync(join(entry(cache), 'torch/lib/libtorch_cpu.so'))).toBe(true);
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
    expect(errors).toContain('unsafe name');
  });

  it('says what to do without Python and without a network', () => {
    const folder = temporaryFolder();
    const noPython = runCommand(['setup'], {
      TORCHFORMER_CACHE: join(folder, 'cache'),
      TORCHFORMER_PYTHON: join(folder, 'none'),
    });
    expect(noPython.status).toBe(1);
    expect(noPython.errors).toContain('Python 3');
    expect(noPython.errors).toContain('--from <folder>');

    const noNetwork = runCommand(['setup'], {
      TORCHFORMER_CACHE: join(folder, 'cache'),
      PIP_NO_INDEX: '1',
      PIP_FIND_LINKS: folder,
      PIP_CONFIG_FILE: '/dev/null',
    });
    expect(noNetwork.status).toBe(1);
    expect(noNetwork.errors).toContain(`pip could not fetch torch==${version}`);
    expect(noNetwork.errors).toContain('--from');
  });

  it.each(['/proc/x', '/dev/null/x', '/dev/null'])(
    'says that %s is no place for the cache',
    (cache) => {
      const { status, errors } = runCommand(['setup'], { TORCHFORMER_CACHE: cache });
      expect(status).toBe(1);
      expect(errors).toContain(`the cache folder ${cache} cannot be written to (E`);
      expect(errors).toContain('set TORCHFORMER_CACHE to a folder that can');
      expect(errors).toContain('[ERR_NATIVE_LOAD]');
    },
  );

  it('leaves a broken link of an earlier --from to be set up anew', () => {
    const folder = temporaryFolder();
    const cache = join(folder, 'cache');
    mkdirSync(entry(cache), { recursive: true });
    symlinkSync(join(folder, 'gone'), join(entry(cache), 'torch'));
    const wheel = zip(folder, `torch-${version}-py3-none-any.whl`, wheelFiles(version));
    const { status } = runCommand(['setup'], {
      TORCHFORMER_CACHE: cache,
      TORCHFORMER_PYTHON: pythonWithWheel(folder, wheel),
    });
    expect(status).toBe(0);
    expect(readFileSync(join(entry(cache), 'torch/lib/libtorch_cpu.so'), 'utf8')).toBe('cpu');
  });
});
