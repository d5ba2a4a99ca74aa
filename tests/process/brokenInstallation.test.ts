/** What is wrong with an installation is said in one error, with its cause and the way out. */
import { cpSync, mkdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  evaluate,
  nowhere,
  root,
  runScript,
  temporaryFolder,
  writeFiles,
  type Changes,
} from './support.js';

const platform = `${process.platform}-${process.arch}`;
const addonPackage = `@torchformer/${platform}`;
const libtorchPackage = `@torchformer/libtorch-cpu-${platform}`;
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  version: string;
};
const libtorch = evaluate('searchLibtorch().found.root').value as string;

interface Installed {
  /** Of the platform package; null leaves it out. */
  readonly addonVersion: string | null;
  /** Of the package with libtorch; null leaves it out. */
  readonly libtorchVersion: string | null;
}

/** A folder with node_modules as npm lays it out, without the registry. */
function install({ addonVersion, libtorchVersion }: Installed): string {
  const folder = temporaryFolder();
  const main = join(folder, 'node_modules/torchformer');
  mkdirSync(main, { recursive: true });
  for (const part of ['package.json', 'dist']) {
    cpSync(join(root, part), join(main, part), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(main, 'node_modules'));
  if (addonVersion !== null) {
    const dependencies = { [libtorchPackage]: '2.13.0-1' };
    const manifest = { name: addonPackage, version: addonVersion, dependencies };
    const addon = join(folder, 'node_modules', addonPackage);
    writeFiles(addon, { 'package.json': JSON.stringify(manifest) });
    for (const name of ['torchformer.node', 'torchformer_bootstrap.node']) {
      cpSync(join(root, 'build/Release', name), join(addon, name));
    }
  }
  if (libtorchVersion !== null) {
    const manifest = { name: libtorchPackage, version: `${libtorchVersion}-1` };
    const libraries = join(folder, 'node_modules', libtorchPackage);
    writeFiles(libraries, {
      'package.json': JSON.stringify(manifest),
      'build-version': `${libtorchVersion}+cpu\n`,
    });
    symlinkSync(join(libtorch, 'lib'), join(libraries, 'lib'));
  }
  return folder;
}

/** Loads the package that is installed in `folder`: `[code, message]`, or what it computed. */
function use(folder: string, changes: Changes = {}, before = ''): unknown {
  const { status, output, errors } = runScript(
    `
    ${before}
    const { tensor } = await import('${folder}/node_modules/torchformer/dist/index.js');
    let result;
    try {
      result = tensor([1, 2]).add(1).toArray();
    } catch (error) {
      result = [error.code, error.message];
    }
    console.log(JSON.stringify(result));
  `,
    { ...nowhere(join(folder, 'cache')), ...changes },
  );
  expect({ status, errors }).toEqual({ status: 0, errors: '' });
  return JSON.parse(output);
}

function failure(...args: Parameters<typeof use>): { code: string; message: string } {
  const [code, message] = use(...args) as [string, string];
  return { code, message };
}

const whole: Installed = { addonVersion: version, libtorchVersion: '2.13.0' };

describe('an installation', () => {
  it('that is whole computes, from its npm packages alone', () => {
    expect(use(install(whole))).toEqual([2, 3]);
  });

  it('without the platform package says which command brings it', () => {
    const { code, message } = failure(install({ ...whole, addonVersion: null }));
    expect(code).toBe('ERR_NATIVE_LOAD');
    expect(message).toContain(`npm package ${addonPackage}: not installed`);
    expect(message).toContain(`npm install --include=optional torchformer@${version}`);
    expect(message).toMatch(/local build in .*: not built/);
  });

  it('with a platform package of another version names both versions', () => {
    const folder = install({ ...whole, addonVersion: '9.8.7' });
    const { code, message } = failure(folder);
    expect(code).toBe('ERR_NATIVE_LOAD');
    expect(message).toContain(`is version 9.8.7, but torchformer is ${version}`);
    expect(message).toContain(`npm install torchformer@${version}`);
  });

  it('without the libtorch package says which commands bring it', () => {
    const { code, message } = failure(install({ ...whole, libtorchVersion: null }));
    expect(code).toBe('ERR_NATIVE_LOAD');
    expect(message).toContain(`npm package ${libtorchPackage}: not installed`);
    expect(message).toContain(`Run \`npm install ${libtorchPackage}@2.13.0-1\``);
    expect(message).toContain('`npx torchformer setup`');
  });

  it('with a libtorch package of another version names both versions', () => {
    const { code, message } = failure(install({ ...whole, libtorchVersion: '2.12.1' }));
    expect(code).toBe('ERR_LIBTORCH_VERSION');
    expect(message).toContain('is libtorch 2.12.1+cpu, but 2.13.0 is needed');
    expect(message).toContain(`npm install ${libtorchPackage}@2.13.0-1`);
  });

  it('beside another copy of the package in the same process is refused, naming both', () => {
    const [first, second] = [install(whole), install(whole)];
    const before = `
      const other = await import('${first}/node_modules/torchformer/dist/index.js');
      other.tensor([1]).add(1);
    `;
    // Two libtorch would be one too many; one and the same is what a second copy can share.
    const { code, message } = failure(second, { TORCHFORMER_LIBTORCH: libtorch }, before);
    expect(code).toBe('ERR_NATIVE_LOAD');
    for (const folder of [first, second]) {
      expect(message).toContain(join(folder, 'node_modules', addonPackage, 'torchformer.node'));
    }
    expect(message).toContain('npm ls torchformer');
  });

  it('on a system with musl is refused in one sentence', () => {
    // Such a Node tells no version of glibc, and has musl's linker among its libraries.
    const before = `
      process.report.getReport = () => ({ header: {}, sharedObjects: ['/lib/ld-musl-x86_64.so.1'] });
    `;
    const { code, message } = failure(install({ ...whole, addonVersion: null }), {}, before);
    expect(code).toBe('ERR_NATIVE_LOAD');
    expect(message).toMatch(/^torchformer cannot run on systems with the C library musl[^\n]*\.$/);
  });
});

describe('a native file that cannot work is named, and never opened:', () => {
  /** The number of the processor family in an ELF header. */
  function changeMachine(file: string): void {
    const bytes = readFileSync(file);
    bytes.writeUInt16LE(process.arch === 'arm64' ? 62 : 183, 18);
    writeFileSync(file, bytes);
  }

  it.each(['torchformer.node', 'torchformer_bootstrap.node'])('%s that is cut off', (name) => {
    const folder = install(whole);
    const file = join(folder, 'node_modules', addonPackage, name);
    truncateSync(file, 10_000);
    const { code, message } = failure(folder);
    expect(code).toBe('ERR_NATIVE_LOAD');
    expect(message).toContain(`${file} is truncated: it has 10000 bytes`);
    expect(message).toContain(`Remove ${join(file, '..')} and run \`npm install\``);
  });

  it('an addon for another processor', () => {
    const folder = install(whole);
    const file = join(folder, 'node_modules', addonPackage, 'torchformer.node');
    changeMachine(file);
    const { code, message } = failure(folder);
    expect(code).toBe('ERR_NATIVE_LOAD');
    expect(message).toMatch(/torchformer\.node is for \S+ processors, but this is Node\.js for /);
  });

  /** A folder with the libraries of libtorch; the big one is shared, not copied. */
  function libtorchWith(change: (file: string) => void): { folder: string; file: string } {
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'lib'));
    symlinkSync(join(libtorch, 'lib/libtorch_cpu.so'), join(folder, 'lib/libtorch_cpu.so'));
    const file = join(folder, 'lib/libc10.so');
    cpSync(join(libtorch, 'lib/libc10.so'), file);
    change(file);
    return { folder, file };
  }

  it('a library of libtorch that is cut off', () => {
    const { folder, file } = libtorchWith((path) => truncateSync(path, 500_000));
    const { code, message } = evaluate('nativeAddon()', { TORCHFORMER_LIBTORCH: folder });
    expect(code).toBe('ERR_NATIVE_LOAD');
    expect(message).toContain(`TORCHFORMER_LIBTORCH ${folder}: ${file} is truncated`);
    expect(message).toContain('Set TORCHFORMER_LIBTORCH to a folder');
  });

  it('a library of libtorch for another processor', () => {
    const { folder, file } = libtorchWith(changeMachine);
    const { code, message } = evaluate('nativeAddon()', { LIBTORCH: folder });
    expect(code).toBe('ERR_NATIVE_LOAD');
    expect(message).toContain(`LIBTORCH ${folder}: ${file} is for`);
    expect(message).toContain('Set LIBTORCH to a folder');
  });

  it('one in the cache does not keep a whole one elsewhere from being used', () => {
    const folder = install(whole);
    const { folder: broken } = libtorchWith((path) => truncateSync(path, 500_000));
    const cache = temporaryFolder();
    symlinkSync(broken, join(cache, 'libtorch-2.13.0-cpu'));
    expect(use(folder, { TORCHFORMER_CACHE: cache })).toEqual([2, 3]);
  });
});
