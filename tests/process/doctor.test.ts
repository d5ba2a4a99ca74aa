import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, realpathSync, symlinkSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { RuntimeReport } from 'torchformer';
import { library, placeAll, wheelFiles } from './libtorchFiles.js';
import {
  evaluate,
  nowhere,
  root,
  runCommand,
  runNode,
  temporaryFolder,
  writeFiles,
  type Changes,
} from './support.js';

const libtorch = evaluate('searchLibtorch().found.root').value as string;

/** The report, its exit code, and the last line of the same as text. */
function examine(changes: Changes = {}, args: readonly string[] = []) {
  const json = runCommand(['doctor', '--json', ...args], changes);
  expect(json.errors).toBe('');
  const report = JSON.parse(json.output) as RuntimeReport;
  expect(json.status).toBe(report.healthy ? 0 : 1);
  return report;
}

/** Compiles a shared library whose code runs when it is opened. */
function compile(path: string, name: string, code: string): void {
  mkdirSync(path, { recursive: true });
  writeFiles(path, { 'source.c': `#include <stdlib.h>\n#include <unistd.h>\n${code}\n` });
  const args = ['-shared', '-fPIC', `-Wl,-soname,${name}`, '-o', name, 'source.c'];
  const { status, stderr } = spawnSync('cc', args, { cwd: path, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

/** A libtorch that runs this when it is opened. */
function fakeLibtorch(code: string): string {
  const folder = temporaryFolder();
  for (const name of ['libc10.so', 'libtorch_cpu.so']) compile(join(folder, 'lib'), name, '');
  compile(join(folder, 'lib'), 'libtorch_cpu.so', code);
  return folder;
}

const onOpening = (statement: string): string =>
  `__attribute__((constructor)) static void run(void) { ${statement} }`;

/** Node with another C library, as far as its report tells. */
function systemWith(report: object): Changes {
  const script = `process.report.getReport = () => (${JSON.stringify(report)})`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}` };
}

/** Own kernels where the processor has the instructions; by rows, where products go other ways. */
const float32Products =
  /^(own (AVX2|AVX-512) kernel((;( \w+)+|,)( of (fewer than )?\d+( to \d+)? rows( or more)?)? by (MKL|oneDNN))*|MKL)$/;

describe('torchformer doctor', () => {
  it('tells of a machine that can compute, in words, and that there is nothing to do', () => {
    const { status, output, errors } = runCommand(['doctor']);
    expect({ status, errors }).toEqual({ status: 0, errors: '' });
    expect(output).toContain(join(root, 'build/Release/torchformer.node, local build'));
    expect(output).toMatch(/^libtorch +2\.13\.0\S* in \/.*, from /m);
    expect(output).toMatch(/^loaded +\/.*libtorch_cpu\.so$/m);
    expect(output).toMatch(/^cpu +a matrix product is correct$/m);
    expect(output).toMatch(/^decoding +float32 and int8 the same alone and in a batch$/m);
    expect(output.endsWith('\nNothing to do.\n')).toBe(true);
  });

  it('tells the same as one object for programs', () => {
    const report = examine();
    expect(report).toMatchObject({
      healthy: true,
      advice: 'Nothing to do.',
      problems: [],
      node: { version: process.versions.node, napi: Number(process.versions.napi) },
      platform: { os: process.platform, arch: process.arch },
      addon: {
        path: join(root, 'build/Release/torchformer.node'),
        place: 'local build',
        builtFor: '2.13.0',
      },
      libtorch: { path: libtorch, loaded: realpathSync(join(libtorch, 'lib/libtorch_cpu.so')) },
    });
    expect(report.devices[0]).toEqual({ device: 'cpu', works: true, problem: null });
    expect(report.decoding).toEqual([
      { precision: 'float32', works: true, problem: null },
      { precision: 'int8', works: true, problem: null },
    ]);
    expect(report.processor.threads).toBeGreaterThan(0);
    expect(report.processor.float32Products).toMatch(float32Products);
    expect(report.cuda.reason).not.toBe('');
  });

  it('tells what multiplies matrices, by number of rows', () => {
    const line = (changes: Changes): string | undefined =>
      /^products +(.*)$/m.exec(runCommand(['doctor'], changes).output)?.[1];
    const [float32, ...rest] = line({ TORCHFORMER_GEMM: null })!.split('; bfloat16 as ');
    expect(float32).toMatch(/^float32 by /);
    expect(float32!.replace('float32 by ', '')).toMatch(float32Products);
    expect(rest.join()).toMatch(/^(rounded float32|bfloat16 instructions)$/);
    expect(line({ TORCHFORMER_GEMM: 'mkl' })).toMatch(
      /^float32 by MKL, set by TORCHFORMER_GEMM; bfloat16 as /,
    );
  });

  it('tells what multiplies int8 weights', () => {
    const kernel = (changes: Changes) => {
      const { output } = runCommand(['doctor'], changes);
      return /^int8 +(.*)$/m.exec(output)?.[1];
    };
    const { int8Products, features } = examine({ TORCHFORMER_GEMM: null }).processor;
    expect(int8Products).toMatch(/^(AVX-512 VNNI|AVX2|none: bfloat16 weights instead)$/);
    expect(kernel({ TORCHFORMER_GEMM: null })).toBe(int8Products);
    if (features.includes('avx2')) expect(kernel({ TORCHFORMER_GEMM: 'avx2' })).toBe('AVX2');
  });

  it.runIf(process.platform === 'linux')('tells which glibc is there and which is needed', () => {
    const { libc, libcVersion, libcNeeded } = examine().platform;
    expect(libc).toBe('glibc');
    expect(libcVersion).toMatch(/^\d+\.\d+$/);
    // That of libtorch itself.
    expect(libcNeeded).toBe('2.28');
  });
});

describe('torchformer doctor says what to do', () => {
  it('without libtorch', () => {
    const changes = nowhere(temporaryFolder());
    const report = examine(changes);
    expect(report).toMatchObject({ healthy: false, libtorch: null, devices: [] });
    expect(report.advice).toBe('Run `npx torchformer setup`.');
    expect(report.searched.map(({ place }) => place)).toContain('setup cache (CPU)');
    const { status, output } = runCommand(['doctor'], changes);
    expect(status).toBe(1);
    expect(output).toMatch(/^libtorch +not found$/m);
    expect(output.endsWith('\nRun `npx torchformer setup`.\n')).toBe(true);
  });

  it('about a variable that names a folder that is not there', () => {
    const { problems, advice } = examine({ TORCHFORMER_LIBTORCH: '/does/not/exist' });
    expect(problems.join()).toContain('TORCHFORMER_LIBTORCH /does/not/exist: does not exist');
    expect(advice).toBe(
      'Set TORCHFORMER_LIBTORCH to a libtorch 2.13.0, or unset it and run `npx torchformer setup`.',
    );
  });

  it('about a variable that names a library and no folder', () => {
    const file = join(libtorch, 'lib/libtorch_cpu.so');
    const { problems, advice } = examine({ TORCHFORMER_LIBTORCH: null, LIBTORCH: file });
    expect(problems.join()).toContain(`LIBTORCH ${file}: `);
    expect(advice).toBe(
      'Set LIBTORCH to a libtorch 2.13.0, or unset it and run `npx torchformer setup`.',
    );
  });

  it('about a library that does not open, when a variable names it', () => {
    const folder = temporaryFolder();
    placeAll(join(folder, 'lib'), {
      'libc10.so': library('c10'),
      'libtorch_cpu.so': library('cpu'),
    });
    const { problems, advice } = examine({ TORCHFORMER_LIBTORCH: folder });
    expect(problems.join()).toContain('does not open');
    expect(problems.join()).toContain(
      'Set TORCHFORMER_LIBTORCH to a complete libtorch, or unset it.',
    );
    expect(advice).toContain('Set TORCHFORMER_LIBTORCH to another libtorch 2.13.0, or unset it');
  });

  it('about a TORCHFORMER_CUDA that is neither 0 nor 1', () => {
    const { problems, advice } = examine({ TORCHFORMER_CUDA: 'yes' });
    expect(problems).toEqual(['TORCHFORMER_CUDA must be 0, 1 or unset, got "yes"']);
    expect(advice).toBe('Set TORCHFORMER_CUDA to 0 or 1, or unset it.');
  });

  it('about TORCHFORMER_CUDA=1 with a CPU build', () => {
    const cache = temporaryFolder();
    symlinkSync(fakeLibtorch(''), join(cache, 'libtorch-2.13.0-cpu'));
    const changes = { ...nowhere(cache), TORCHFORMER_CUDA: '1' };
    const { problems, advice } = examine(changes);
    expect(problems.join()).toContain('it is a CPU build');
    expect(advice).toBe(
      'Set TORCHFORMER_CUDA to 0 or unset it, or run `npx torchformer setup --cuda`.',
    );
    const named = examine({ ...changes, LIBTORCH: join(cache, 'libtorch-2.13.0-cpu') });
    expect(named.advice).toBe(
      'Set TORCHFORMER_CUDA to 0 or unset it, or set LIBTORCH to a libtorch with CUDA.',
    );
  });

  describe('about the npm package of the addon', () => {
    const name = `@torchformer/${process.platform}-${process.arch}`;
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      version: string;
    };

    /** What the doctor of an installed package says; null: the addon's package is not there. */
    function installed(addonVersion: string | null, change: (addon: string) => void = () => {}) {
      const folder = realpathSync(temporaryFolder());
      const main = join(folder, 'node_modules/torchformer');
      for (const part of ['package.json', 'dist', 'bin']) {
        cpSync(join(root, part), join(main, part), { recursive: true });
      }
      symlinkSync(join(root, 'node_modules'), join(main, 'node_modules'));
      const addon = join(folder, 'node_modules', name);
      if (addonVersion !== null) {
        writeFiles(addon, { 'package.json': JSON.stringify({ name, version: addonVersion }) });
        for (const file of ['torchformer.node', 'torchformer_bootstrap.node']) {
          cpSync(join(root, 'build/Release', file), join(addon, file));
        }
        change(addon);
      }
      const command = [join(main, 'bin/torchformer.js'), 'doctor', '--json'];
      const { output } = runNode(command, { TORCHFORMER_LIBTORCH: libtorch });
      return { package: addon, ...(JSON.parse(output) as RuntimeReport) };
    }

    it('that is whole: nothing', () => {
      expect(installed(version)).toMatchObject({ healthy: true, advice: 'Nothing to do.' });
    });

    it.each(['torchformer.node', 'torchformer_bootstrap.node'])('with %s cut off', (file) => {
      const { package: addon, advice } = installed(version, (folder) =>
        truncateSync(join(folder, file), 10_000),
      );
      expect(advice).toBe(`Remove ${addon} and run \`npm install\` again on this machine.`);
    });

    it.each(['torchformer.node', 'torchformer_bootstrap.node'])(
      'with a %s of another project',
      (file) => {
        const { package: addon, advice } = installed(version, (folder) =>
          compile(folder, file, 'int nothing;'),
        );
        expect(advice).toBe(`Remove ${addon} and run \`npm install\` again on this machine.`);
      },
    );

    it('of another version', () => {
      const { package: addon, advice } = installed('9.8.7');
      expect(advice).toContain(`remove ${addon} and run \`npm install torchformer@${version}\``);
    });

    it('that is not there', () => {
      const { advice } = installed(null);
      expect(advice).toContain(`npm install --include=optional torchformer@${version}`);
      expect(advice).toContain('if npm says "up to date", remove node_modules and the lock file');
    });
  });

  it('about a libtorch of another version', () => {
    const folder = temporaryFolder();
    placeAll(folder, wheelFiles('2.9.0'));
    const { problems, advice } = examine({ TORCHFORMER_LIBTORCH: folder });
    expect(problems.join()).toContain('is libtorch 2.9.0, but 2.13.0 is needed');
    expect(advice).toContain('Set TORCHFORMER_LIBTORCH to a libtorch 2.13.0');
  });

  it.each([
    ['is cut off', library('cpu', { sections: 5 }), 'libtorch_cpu.so is truncated'],
    ['is for another processor', library('cpu', { machine: 8 }), 'is for machine 8 processors'],
  ])('about a library in the cache that %s', (_, content, problem) => {
    const cache = temporaryFolder();
    placeAll(join(cache, 'libtorch-2.13.0-cpu'), {
      ...wheelFiles('2.13.0'),
      'torch/lib/libtorch_cpu.so': content,
    });
    const { problems, advice } = examine({ ...nowhere(cache) });
    expect(problems.join()).toContain(problem);
    expect(advice).toContain('npx torchformer setup');
  });

  it('without the addon', () => {
    const folder = temporaryFolder();
    for (const part of ['package.json', 'dist', 'bin']) {
      cpSync(join(root, part), join(folder, part), { recursive: true });
    }
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    const { status, output } = runNode([join(folder, 'bin/torchformer.js'), 'doctor', '--json']);
    expect(status).toBe(1);
    const report = JSON.parse(output) as RuntimeReport;
    expect(report).toMatchObject({ healthy: false, addon: null });
    // What else is there is told all the same.
    expect(report.libtorch?.path).toBe(libtorch);
    expect(report.advice).toContain('npm install --include=optional torchformer@');
    expect(report.advice).toContain('npm run build');
  });

  it('on a system with musl, in one sentence', () => {
    const report = examine(systemWith({ header: {}, sharedObjects: ['/lib/ld-musl-x86_64.so.1'] }));
    expect(report.platform).toMatchObject({ libc: 'musl', libcVersion: null });
    expect(report.problems).toHaveLength(1);
    expect(report.problems[0]).toContain('musl');
    expect(report.advice).toBe('Use a system with glibc, such as Debian or Ubuntu.');
  });

  it('on a system whose glibc is too old', () => {
    const report = examine(systemWith({ header: { glibcVersionRuntime: '2.17' } }));
    expect(report.problems).toContain('glibc 2.28 is needed, but this system has 2.17');
    expect(report.advice).toBe('Use a system with glibc 2.28 or later.');
  });
});

describe('torchformer doctor finds out that decoding', () => {
  /** Changes what an op of the addon does: `change(call)` returns a function in its place. */
  const withOp = (op: string, change: string): Changes => {
    const script = `
      const { dlopen } = process;
      process.dlopen = (module, ...rest) => {
        dlopen.call(process, module, ...rest);
        const { bind } = module.exports;
        if (bind === undefined) return;
        module.exports.bind = (name, overload) => {
          const call = bind(name, overload);
          return name === 'torchformer_decode::${op}' ? (${change})(call) : call;
        };
      };`;
    return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}` };
  };

  it('depends on the batch', () => {
    // Of 24 sources together and then alone, the last one may have one token only.
    const report = examine(
      withOp(
        'add',
        `(call) => {
          let count = 0;
          return (generation, source, maxLength, options) =>
            call(generation, source, ++count === 48 ? 1 : maxLength, options);
        }`,
      ),
    );
    const difference =
      /^depends on the batch: a source of \d+ tokens gave tokens \d+ with scores [0-9a-f ]+ alone and tokens [\d ]+ with scores [0-9a-f ]+ among 24 sources$/;
    expect(report.decoding).toEqual([
      { precision: 'float32', works: false, problem: expect.stringMatching(difference) as string },
      { precision: 'int8', works: false, problem: expect.stringMatching(difference) as string },
    ]);
    expect(report.problems[0]).toBe(`decoding in float32 ${report.decoding[0]?.problem}`);
    expect(report.advice).toBe(
      'Please report this output: on this processor, a translation may depend on those made beside it.',
    );
  });

  it('fails', () => {
    const changes = withOp('run', "() => () => { throw new Error('no numbers'); }");
    const { problems } = examine(changes);
    expect(problems).toEqual([
      'decoding in float32 failed: no numbers',
      'decoding in int8 failed: no numbers',
    ]);
    const { output } = runCommand(['doctor'], changes);
    expect(output).toMatch(/^decoding +not float32 and int8$/m);
  });
});

describe('torchformer doctor survives', () => {
  it('a libtorch that crashes, and names the signal', () => {
    const folder = fakeLibtorch(onOpening('abort();'));
    const { problems, advice, devices } = examine({ TORCHFORMER_LIBTORCH: folder });
    expect(problems).toEqual(['opening libtorch crashed (SIGABRT)']);
    expect(devices).toEqual([]);
    // Set-up would bring one that the variable keeps from being used.
    expect(advice).toBe(
      'Set TORCHFORMER_LIBTORCH to another libtorch 2.13.0, or unset it and run ' +
        '`npx torchformer setup`.',
    );
  });

  it('one that crashes in the cache, which set-up replaces', () => {
    const cache = temporaryFolder();
    symlinkSync(fakeLibtorch(onOpening('abort();')), join(cache, 'libtorch-2.13.0-cpu'));
    const { problems, advice } = examine({ ...nowhere(cache) });
    expect(problems).toEqual(['opening libtorch crashed (SIGABRT)']);
    expect(advice).toBe('Run `npx torchformer setup --force`.');
  });

  it('a libtorch that ends the process', () => {
    const folder = fakeLibtorch(onOpening('_exit(7);'));
    const { problems } = examine({ TORCHFORMER_LIBTORCH: folder });
    expect(problems).toEqual(['opening libtorch ended the process with exit code 7']);
  });

  it('a libtorch that never comes back', () => {
    const folder = fakeLibtorch(onOpening('for (;;) sleep(1);'));
    const { problems } = examine({ TORCHFORMER_LIBTORCH: folder }, ['--timeout', '1']);
    expect(problems).toEqual(['opening libtorch took longer than 1 s and was stopped']);
  });

  it('a CUDA library that crashes, and tells that the CPU works', () => {
    const folder = temporaryFolder();
    compile(join(folder, 'lib'), 'libtorch_cuda.so', onOpening('*(volatile int *)8 = 1;'));
    for (const name of ['libc10.so', 'libtorch_cpu.so', 'libgomp.so.1']) {
      symlinkSync(join(libtorch, 'lib', name), join(folder, 'lib', name));
    }
    const { problems, advice, devices } = examine({
      TORCHFORMER_LIBTORCH: folder,
      TORCHFORMER_CUDA: '1',
    });
    expect(problems).toEqual(['opening libtorch crashed (SIGSEGV)']);
    expect(devices).toEqual([{ device: 'cpu', works: true, problem: null }]);
    expect(advice).toContain('nvidia-smi');
    expect(advice).toContain('TORCHFORMER_CUDA=0');
  });
});

describe('examineRuntime', () => {
  it('takes a time limit and no other option', () => {
    const script = (options: string) => `
      import { examineRuntime } from 'torchformer';
      const fault = await examineRuntime(${options}).catch((error) => error);
      console.log(fault.name + ': ' + fault.message);
    `;
    const run = (options: string) =>
      runNode(['--input-type=module', '-e', script(options)]).output.trim();
    expect(run('{ time: 1 }')).toBe(
      'TypeError: examineRuntime: unknown option "time"; valid options: timeout',
    );
    expect(run('{ timeout: 0 }')).toContain('RangeError: examineRuntime: timeout must be');
  });
});
