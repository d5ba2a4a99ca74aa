import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { faultsOf } from '../../scripts/pack/binaryRules.cjs';
import { evaluate, root, temporaryFolder, writeFiles } from '../process/support.js';

/** The libtorch that was built with. */
const found = evaluate('searchLibtorch().found').value as { root: string; libraries: string };
const libtorch = found.libraries;

/** A library of a few lines of C, linked as ours are unless told otherwise. */
function compile(code: string, flags: readonly string[] = ['-Wl,-z,now', '-Wl,-z,nodelete']) {
  const folder = temporaryFolder();
  writeFiles(folder, { 'library.c': code });
  const file = join(folder, 'library.so');
  const source = join(folder, 'library.c');
  const args = ['-shared', '-fPIC', '-O1', ...flags, '-o', file, source, '-ldl', '-lm'];
  const { status, stderr } = spawnSync('cc', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`cc: ${stderr}`);
  return file;
}

/** The CUDA kernels are built only where nvcc is. */
const built = [
  'torchformer.node',
  'torchformer_bootstrap.node',
  'libtorchformer_core.so',
  'libtorchformer_cuda.so',
].filter((name) => !name.includes('cuda') || existsSync(join(root, 'build/Release', name)));

describe('the native libraries that a build leaves', () => {
  it.each(built)('%s loads wherever libtorch does', (name) => {
    const file = join(root, 'build/Release', name);
    const privateFolders = [join(root, '.'), found.root, homedir()];
    expect(faultsOf(file, { libtorch, privateFolders })).toEqual([]);
  });
});

describe('the check of native libraries finds', () => {
  const cuda = join(root, 'build/Release/libtorchformer_cuda.so');
  it.skipIf(!existsSync(cuda))('the CUDA runtime in any library but that of CUDA kernels', () => {
    const renamed = join(temporaryFolder(), 'libtorchformer_core.so');
    copyFileSync(cuda, renamed);
    expect(faultsOf(renamed, { libtorch })).toContainEqual(
      expect.stringMatching(/^it needs libcudart\.so\.\d+, which not every system has$/),
    );
  });

  it('nothing in a library that does not stand out', () => {
    expect(faultsOf(compile('int one(void) { return 1; }'), { libtorch })).toEqual([]);
  });

  it('a function of a newer C library than libtorch wants', () => {
    // glibc has this function since 2.38 or 2.34, depending on the name; both are too new.
    const file = compile('int dladdr(); int f(void) { return dladdr(); }');
    expect(faultsOf(file, { libtorch })).toEqual([
      expect.stringMatching(/^dladdr wants GLIBC_2\.34, and libtorch only GLIBC_2\.28/),
    ]);
  });

  it('a symbol that neither libtorch nor the system defines, and no other', () => {
    const file = compile(`
      int nobody_has_this(void);
      unsigned long long aoti_torch_abi_version(void);
      int napi_create_object(void);
      int f(void) { return nobody_has_this() + aoti_torch_abi_version() + napi_create_object(); }
    `);
    expect(faultsOf(file, { libtorch })).toEqual([
      'nobody_has_this is defined neither in libtorch nor in a library of the system',
    ]);
  });

  it('a search path, and lazy binding, and that it can be unloaded', () => {
    const file = compile('int one(void) { return 1; }', ['-Wl,-rpath,/opt/lib', '-Wl,-z,lazy']);
    expect(faultsOf(file, { libtorch })).toEqual([
      expect.stringContaining('search path /opt/lib'),
      expect.stringContaining('-z now'),
      expect.stringContaining('-z nodelete'),
    ]);
  });

  it('a path of this machine', () => {
    const file = compile('const char* f(void) { return __FILE__; }');
    const folder = join(file, '..');
    expect(faultsOf(file, { libtorch, privateFolders: [folder] })).toEqual([
      expect.stringContaining(folder),
    ]);
  });
});
