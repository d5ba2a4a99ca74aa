import { chmodSync, cpSync, existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  compileFakeLibtorch,
  evaluate,
  nowhere,
  root,
  runScript,
  temporaryFolder,
  writeFiles,
} from './support.js';

/** The libtorch that the tests run with. */
const libtorch = evaluate('searchLibtorch().found.root').value as string;

/** A copy of the package as npm would install it, with or without the built addon. */
function copyPackage(parts: readonly string[]): string {
  const folder = temporaryFolder();
  for (const part of ['package.json', 'dist', ...parts]) {
    cpSync(join(root, part), join(folder, part), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

function workerFile(code: string): string {
  const folder = temporaryFolder();
  writeFiles(folder, { 'worker.mjs': code });
  return join(folder, 'worker.mjs');
}

describe('loading the addon', () => {
  it('happens at first use, not at import', () => {
    const { status, output } = runScript(`
      import 'torchformer';
      import { loadedRuntime } from '${root}dist/runtime/native/load.js';
      console.log(loadedRuntime());
    `);
    expect({ status, output }).toEqual({ status: 0, output: 'null\n' });
  });

  it('gives the libtorch it was built for', () => {
    const { value } = evaluate('nativeAddon().versions().torch');
    expect(value).toBe('2.13.0');
  });

  it('works in worker threads, one after the other and at once, with exit code 0', () => {
    const worker = workerFile(`
      import { parentPort } from 'node:worker_threads';
      import { tensor } from '${root}dist/index.js';
      parentPort.postMessage(tensor([1, 2]).add(tensor([3, 4])).toArray());
    `);
    const { status, output, errors } = runScript(`
      import { Worker } from 'node:worker_threads';
      import { tensor } from 'torchformer';
      const run = () => new Promise((resolve, reject) => {
        const worker = new Worker('${worker}', { execArgv: [] });
        let answer;
        worker.on('message', (message) => (answer = message));
        worker.on('error', reject).on('exit', (code) => resolve([code, answer]));
      });
      const results = [await run(), await run(), ...(await Promise.all([run(), run()]))];
      console.log(JSON.stringify([...results, tensor([1]).add(tensor([1])).toArray()]));
    `);
    expect({ status, errors }).toEqual({ status: 0, errors: '' });
    const one = [0, [4, 6]];
    expect(JSON.parse(output)).toEqual([one, one, one, one, [2]]);
  });

  it('works in the main thread after a worker that loaded it first has ended', () => {
    const worker = workerFile(`
      import { tensor } from '${root}dist/index.js';
      tensor([1]).add(1);
    `);
    const { status, output, errors } = runScript(`
      import { Worker } from 'node:worker_threads';
      import { tensor } from 'torchformer';
      const code = await new Promise((resolve, reject) => {
        new Worker('${worker}', { execArgv: [] }).on('error', reject).on('exit', resolve);
      });
      console.log(code, tensor([2]).mul(tensor([3])).item());
    `);
    expect({ status, output, errors }).toEqual({ status: 0, output: '0 6\n', errors: '' });
  });

  it('is refused for a second copy of the package in one process, naming both files', () => {
    const other = copyPackage(['build/Release']);
    const { status, output, errors } = runScript(`
      const first = await import('${root}dist/runtime/native/load.js');
      const second = await import('${other}/dist/runtime/native/load.js');
      first.nativeAddon();
      try {
        second.nativeAddon();
      } catch (error) {
        console.log(JSON.stringify({ code: error.code, message: error.message }));
      }
    `);
    expect({ status, errors }).toEqual({ status: 0, errors: '' });
    const { code, message } = JSON.parse(output) as { code: string; message: string };
    expect(code).toBe('ERR_NATIVE_LOAD');
    expect(message).toContain(join(root, 'build/Release/torchformer.node'));
    expect(message).toContain(join(other, 'build/Release/torchformer.node'));
  });

  it('says where it looked when there is no addon, and how to build it', () => {
    const copy = copyPackage([]);
    const { output } = runScript(`
      const { nativeAddon } = await import('${copy}/dist/runtime/native/load.js');
      try {
        nativeAddon();
      } catch (error) {
        console.log(error.code + ' ' + error.message);
      }
    `);
    expect(output).toContain('ERR_NATIVE_LOAD');
    expect(output).toContain(join(copy, 'build'));
    expect(output).toContain(`@torchformer/${process.platform}-${process.arch}`);
    expect(output).toContain('npm run build');
  });

  it('takes the folder in TORCHFORMER_ADDON, and nothing else', () => {
    const folder = temporaryFolder();
    const missing = evaluate('nativeAddon()', { TORCHFORMER_ADDON: folder });
    expect(missing.code).toBe('ERR_NATIVE_LOAD');
    expect(missing.message).toContain(`TORCHFORMER_ADDON=${folder}: has no ${folder}`);
    expect(missing.message).not.toContain('local build');
    cpSync(join(root, 'build/Release'), folder, { recursive: true });
    const found = evaluate('nativeAddon() && loadedRuntime().addon', { TORCHFORMER_ADDON: folder });
    expect(found.value).toBe(join(folder, 'torchformer.node'));
  });

  it('says which addon is broken', () => {
    const copy = copyPackage([]);
    writeFiles(join(copy, 'build/Release'), {
      'torchformer.node': 'no library',
      'torchformer_bootstrap.node': 'no library',
    });
    const { output } = runScript(`
      const { nativeAddon } = await import('${copy}/dist/runtime/native/load.js');
      try {
        nativeAddon();
      } catch (error) {
        console.log(error.code + ' ' + error.message);
      }
    `);
    expect(output).toContain('ERR_NATIVE_LOAD');
    expect(output).toContain(join(copy, 'build/Release/torchformer_bootstrap.node'));
  });
});

describe('finding libtorch', () => {
  it('fails with every place that was tried and the way out', () => {
    const cache = temporaryFolder();
    const { code, name, message } = evaluate('nativeAddon()', nowhere(cache));
    expect({ code, name }).toEqual({ code: 'ERR_NATIVE_LOAD', name: 'TorchError' });
    for (const part of [
      'TORCHFORMER_LIBTORCH: not set',
      'LIBTORCH: not set',
      join(cache, 'libtorch-2.13.0-cpu'),
      join(cache, 'libtorch-2.13.0-cuda'),
      `@torchformer/libtorch-cpu-${process.platform}-${process.arch}: not installed`,
      'no-such-python',
      'npx torchformer setup',
    ]) {
      expect(message).toContain(part);
    }
  });

  it('takes the folder in TORCHFORMER_LIBTORCH before all others', () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'mine/include/torch/headeronly'), { recursive: true });
    symlinkSync(join(libtorch, 'lib'), join(folder, 'mine/lib'));
    const { value } = evaluate('[nativeAddon().versions().torch, loadedRuntime().libtorch]', {
      TORCHFORMER_LIBTORCH: join(folder, 'mine'),
      LIBTORCH: '/does/not/exist',
    });
    expect(value).toMatchObject([
      '2.13.0',
      { root: join(folder, 'mine'), place: 'TORCHFORMER_LIBTORCH' },
    ]);
  });

  it.each([
    ['the folder with lib/ in it', libtorch],
    ['lib/ itself', join(libtorch, 'lib')],
    ['the folder around torch/', join(libtorch, '..')],
  ])('accepts %s', (_, path) => {
    const { value } = evaluate('searchLibtorch().found.root', { TORCHFORMER_LIBTORCH: path });
    expect(value).toBe(libtorch);
  });

  it('does not go on to other places when a named folder does not do', () => {
    const { code, message } = evaluate('nativeAddon()', {
      TORCHFORMER_LIBTORCH: '/does/not/exist',
    });
    expect(code).toBe('ERR_NATIVE_LOAD');
    expect(message).toContain('TORCHFORMER_LIBTORCH /does/not/exist: does not exist');
    expect(message).toContain('Set TORCHFORMER_LIBTORCH to');
  });

  it('names the library that does not open', () => {
    const folder = temporaryFolder();
    writeFiles(join(folder, 'lib'), { 'libc10.so': 'no library', 'libtorch_cpu.so': 'no library' });
    const { code, message } = evaluate('nativeAddon()', { TORCHFORMER_LIBTORCH: folder });
    expect(code).toBe('ERR_NATIVE_LOAD');
    expect(message).toContain(join(folder, 'lib/libc10.so'));
  });

  it('finds the torch of an installed Python', () => {
    const folder = temporaryFolder();
    // Stands in for Python: answers the version question, then the one about torch.
    writeFiles(folder, {
      python: `#!/bin/sh\ncase "$*" in *find_spec*) echo '${libtorch}' ;; *) echo 3 ;; esac\n`,
    });
    const python = join(folder, 'python');
    chmodSync(python, 0o755);
    const { value } = evaluate(`searchLibtorch().found?.place`, {
      ...nowhere(folder),
      TORCHFORMER_PYTHON: python,
    });
    expect(value).toBe(`Python (${python})`);
  });
});

describe('a libtorch of another version', () => {
  const newer = (2n << 56n) | (14n << 48n) | (1n << 40n);

  it('is refused before it is opened when its folder tells the version', () => {
    const folder = temporaryFolder();
    compileFakeLibtorch(folder, newer);
    writeFiles(folder, { 'version.py': "__version__ = '2.14.1+cpu'\n" });
    const changes = { TORCHFORMER_LIBTORCH: folder };
    const { code, message } = evaluate('nativeAddon()', changes);
    expect(code).toBe('ERR_LIBTORCH_VERSION');
    expect(message).toContain('2.14.1+cpu');
    expect(message).toContain('2.13.0');
    const after = evaluate(
      '(() => { try { nativeAddon(); } catch { return bootstrap().loaded(); } })()',
      changes,
    );
    expect(after.value).toBeNull();
  });

  it('is refused by its own word when the folder does not tell', () => {
    const folder = temporaryFolder();
    compileFakeLibtorch(folder, newer);
    const { code, message } = evaluate('nativeAddon()', { TORCHFORMER_LIBTORCH: folder });
    expect(code).toBe('ERR_LIBTORCH_VERSION');
    expect(message).toContain('libtorch 2.14.1');
    expect(message).toContain('built for 2.13.0');
    expect(message).toContain('npx torchformer setup');
  });

  it('cannot slip in beside one that is open already', () => {
    const folder = temporaryFolder();
    compileFakeLibtorch(folder, newer);
    const { code, message } = evaluate(
      `[nativeAddon().versions(), bootstrap().open('${folder}/lib', false)]`,
    );
    expect(code).toBe('ERR_NATIVE_LOAD');
    expect(message).toContain(join(libtorch, 'lib/libc10.so'));
    expect(message).toContain(join(folder, 'lib/libc10.so'));
  });
});

describe('TORCHFORMER_GEMM', () => {
  it('chooses the library of float32 products', () => {
    const { value } = evaluate('nativeAddon().versions().float32Products', {
      TORCHFORMER_GEMM: 'onednn',
    });
    expect(value).toBe('oneDNN, set by TORCHFORMER_GEMM');
  });

  it('takes no other name', () => {
    const { code, message } = evaluate('nativeAddon().versions()', { TORCHFORMER_GEMM: 'blas' });
    expect(code).toBe('ERR_ARGUMENT');
    expect(message).toMatch(
      /TORCHFORMER_GEMM must be one of 'mkl', 'onednn'.* on this machine, got 'blas'; leave it out/,
    );
  });
});

describe('CUDA', () => {
  const cpuBuild = !existsSync(join(libtorch, 'lib/libtorch_cuda.so'));

  it('is not opened with TORCHFORMER_CUDA=0', () => {
    const { value } = evaluate('[nativeAddon().cudaStatus().devices, loadedRuntime().cuda]', {
      TORCHFORMER_CUDA: '0',
    });
    expect(value).toEqual([
      0,
      { open: false, reason: 'TORCHFORMER_CUDA=0', fix: 'Unset TORCHFORMER_CUDA.' },
    ]);
  });

  it.runIf(cpuBuild)('a CPU build has none, and the way out fits where it came from', () => {
    const { value } = evaluate('(nativeAddon(), loadedRuntime().cuda)', {
      TORCHFORMER_CUDA: null,
      TORCHFORMER_LIBTORCH: libtorch,
    });
    expect(value).toEqual({
      open: false,
      reason: 'this libtorch is a CPU build',
      fix:
        'Set TORCHFORMER_LIBTORCH to a libtorch with CUDA, or unset it and run ' +
        '`npx torchformer setup --cuda`.',
    });
  });

  it.runIf(cpuBuild)('that is asked for and not there is an error', () => {
    const { code, message } = evaluate('nativeAddon()', { TORCHFORMER_CUDA: '1' });
    expect(code).toBe('ERR_CUDA_UNAVAILABLE');
    expect(message).toContain('npx torchformer setup --cuda');
  });

  it('takes no other wish than 0 and 1', () => {
    const { name, message } = evaluate('nativeAddon()', { TORCHFORMER_CUDA: 'yes' });
    expect(name).toBe('TypeError');
    expect(message).toContain('TORCHFORMER_CUDA must be 0, 1 or unset, got "yes"');
  });
});

describe('the environment that native code sees', () => {
  // In the main thread `process.env` is C's environment.
  const seen = (name: string, changes: Record<string, string | null>): unknown =>
    evaluate(`(nativeAddon(), process.env['${name}'])`, changes).value;

  it('gets a short OpenMP spin, unless the user chose one', () => {
    const unset = { GOMP_SPINCOUNT: null, OMP_WAIT_POLICY: null };
    expect(Number(seen('GOMP_SPINCOUNT', unset))).toBeGreaterThan(0);
    expect(seen('GOMP_SPINCOUNT', { ...unset, GOMP_SPINCOUNT: '7' })).toBe('7');
    expect(seen('GOMP_SPINCOUNT', { ...unset, OMP_WAIT_POLICY: 'active' })).toBeNull();
  });

  it('gets huge pages for big buffers, unless the user chose otherwise', () => {
    expect(seen('THP_MEM_ALLOC_ENABLE', { THP_MEM_ALLOC_ENABLE: null })).toBe('1');
    expect(seen('THP_MEM_ALLOC_ENABLE', { THP_MEM_ALLOC_ENABLE: '0' })).toBe('0');
  });
});

describe('exchangePaths', () => {
  it('swaps two folders', () => {
    const folder = temporaryFolder();
    writeFiles(folder, { 'a/old': '', 'b/new': '' });
    const { value } = evaluate(`exchangePaths('${folder}/a', '${folder}/b')`);
    expect(value).toBeNull();
    expect(existsSync(join(folder, 'a/new')) && existsSync(join(folder, 'b/old'))).toBe(true);
  });

  it('names the error of the system', () => {
    const folder = temporaryFolder();
    expect(evaluate(`exchangePaths('${folder}', '${folder}/none')`).value).toBe('ENOENT');
  });
});
