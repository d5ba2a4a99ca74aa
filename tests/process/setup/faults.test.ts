import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import {
  entryIn,
  library,
  place,
  placeAll,
  version,
  wheelFiles,
  zip,
  zipBytes,
  type Files,
} from '../libtorchFiles.js';
import {
  environment,
  root,
  runCommand,
  runScript,
  temporaryFolder,
  type Changes,
} from '../support.js';

const command = join(root, 'bin/torchformer.js');
const isRoot = process.getuid?.() === 0;
const otherMachine = process.arch === 'arm64' ? 62 : 183;
const cpuOnly = (wheelVersion: string): Record<string, string | Buffer> => {
  const files = wheelFiles(wheelVersion);
  delete files['torch/lib/libtorch_cuda.so'];
  return files;
};

/** Runs set-up from `source`, and expects that it fails and leaves the cache empty. */
function expectRefusal(source: string, args: readonly string[] = []): string {
  const cache = join(temporaryFolder(), 'cache');
  const { status, errors } = runCommand(['setup', '--from', source, ...args], {
    TORCHFORMER_CACHE: cache,
  });
  expect(status, errors).toBe(1);
  expect(existsSync(cache) ? readdirSync(cache) : []).toEqual([]);
  return errors;
}

describe('torchformer setup refuses a wheel', () => {
  it.each<[string, Files, readonly string[]]>([
    [
      'with a library that is cut off',
      { 'torch/lib/libtorch_cpu.so': library('cpu', { sections: 10 }) },
      ['libtorch_cpu.so is truncated: it has 67 bytes', 'Pass a complete libtorch 2.13.0'],
    ],
    [
      'with an empty library',
      { 'torch/lib/libc10.so': '' },
      ['libc10.so is not a library: it is empty', 'Pass a complete libtorch'],
    ],
    [
      'with a library that is none',
      { 'torch/lib/libc10.so': '<html>no such page</html>' },
      ['libc10.so is not a library: it does not start with', 'Pass a complete libtorch'],
    ],
    [
      'for another processor',
      { 'torch/lib/libc10.so': library('c10', { machine: otherMachine }) },
      [
        `libc10.so is for ${otherMachine === 62 ? 'x86-64' : 'aarch64'} processors`,
        `for ${process.platform} ${process.arch}`,
      ],
    ],
    [
      'of an older version',
      { 'torch/version.py': "__version__ = '1.13.1+cpu'\n" },
      ['is libtorch 1.13.1+cpu', 'needs 2.13.0', 'ERR_LIBTORCH_VERSION'],
    ],
  ])('%s', (_, changes, texts) => {
    const folder = temporaryFolder();
    const errors = expectRefusal(zip(folder, 'torch.whl', { ...cpuOnly(version), ...changes }));
    for (const text of texts) expect(errors).toContain(text);
  });

  it('that is cut off', () => {
    const whole = zipBytes(cpuOnly(version));
    const wheel = place(join(temporaryFolder(), 'torch.whl'), whole.subarray(0, whole.length / 2));
    const errors = expectRefusal(wheel);
    expect(errors).toContain(`${wheel} cannot be unpacked`);
    expect(errors).toContain('truncated');
    expect(errors).toContain('fetch it again');
  });

  it('with damaged content', () => {
    const name = 'torch/lib/libc10.so';
    const claims = { [name]: { checksum: 1 } };
    const errors = expectRefusal(zip(temporaryFolder(), 'torch.whl', cpuOnly(version), claims));
    expect(errors).toContain(`${name} in it is damaged`);
  });

  it('with packed content that is damaged, naming the wheel, the file in it and the way out', () => {
    const name = 'torch/lib/libtorch_cpu.so';
    const whole = zipBytes(cpuOnly(version));
    const start = whole.indexOf(name) + name.length;
    const wheel = place(join(temporaryFolder(), 'torch.whl'), whole.fill(0xff, start, start + 20));
    const errors = expectRefusal(wheel);
    expect(errors).toContain(
      `${wheel} cannot be unpacked: ${name} in it is damaged or truncated (`,
    );
    expect(errors).toContain('fetch it again');
    expect(errors).toContain('[ERR_NATIVE_LOAD]');
  });

  it('with any byte flipped in one sentence, if it notices', () => {
    const folder = temporaryFolder();
    const { status, output, errors } = runScript(`
      import { unpackLibtorch } from '${root}dist/runtime/setup/archive.js';
      import { readFileSync, writeFileSync } from 'node:fs';
      const whole = readFileSync(${JSON.stringify(zip(folder, 'whole.whl', cpuOnly(version)))});
      const wheel = ${JSON.stringify(join(folder, 'torch.whl'))};
      let refused = 0;
      for (let at = 0; at < whole.length; at += 3) {
        const flipped = Buffer.from(whole);
        flipped[at] ^= 0xff;
        writeFileSync(wheel, flipped);
        try {
          await unpackLibtorch(wheel, ${JSON.stringify(folder)} + '/' + at, 'cpu');
        } catch ({ code, message }) {
          refused++;
          const clear = code === 'ERR_NATIVE_LOAD' && message.includes(wheel);
          if (!clear) console.log(at, code, message);
        }
      }
      if (refused < 100) console.log('only', refused, 'were refused');
    `);
    expect({ status, output, errors }).toEqual({ status: 0, output: '', errors: '' });
  });

  it('whose METADATA would fill the memory', () => {
    const name = `torch-${version}.dist-info/METADATA`;
    const files = { ...cpuOnly(version), [name]: Buffer.alloc(17 * 2 ** 20, ' ') };
    const errors = expectRefusal(zip(temporaryFolder(), 'torch.whl', files));
    expect(errors).toContain(`${name} in it has more than ${16 * 2 ** 20} bytes of text`);
  });

  it.each(['torch/include/../../../x', '/torch/lib/x', 'torch/lib/..\\x'])(
    'with a file named %s, before anything is written',
    (name) => {
      const wheel = zip(temporaryFolder(), 'torch.whl', { ...cpuOnly(version), [name]: '' });
      const errors = expectRefusal(wheel);
      expect(errors).toContain('it contains an unsafe path, which leads out of its folder');
      expect(errors).toContain('a source that you trust');
    },
  );

  it('with a link in it', () => {
    const name = 'torch/lib/libtorch_cpu.so';
    const files = { ...cpuOnly(version), [name]: '/etc/passwd' };
    const errors = expectRefusal(
      zip(temporaryFolder(), 'torch.whl', files, { [name]: { mode: 0o120777 } }),
    );
    expect(errors).toContain(`it contains a link, which may lead out of its folder: ${name}`);
  });

  it('that is of another project', () => {
    const wheel = zip(temporaryFolder(), 'numpy.whl', { 'numpy/__init__.py': '' });
    expect(expectRefusal(wheel)).toContain(
      'it does not contain libtorch (no torch/lib and no libtorch/lib)',
    );
  });

  it('with another checksum than the one given', () => {
    const wheel = zip(temporaryFolder(), 'torch.whl', cpuOnly(version));
    const errors = expectRefusal(wheel, ['--sha256', '0'.repeat(64)]);
    expect(errors).toContain(`expected ${'0'.repeat(64)}: it is a different file, or damaged`);
  });

  it("that needs NVIDIA's libraries, where they can be had nowhere", () => {
    // A real library with the need of one that this wheel does not bring.
    const folder = temporaryFolder();
    const needy = join(folder, 'libtorch_cpu.so');
    writeFileSync(join(folder, 'empty.c'), '');
    const cc = (...args: string[]) => {
      const { status, stderr } = spawnSync('cc', ['-shared', '-fPIC', ...args], {
        encoding: 'utf8',
        cwd: folder,
      });
      if (status !== 0) throw new Error(stderr);
    };
    cc('-Wl,-soname,libcudart.so.13', '-o', 'libcudart.so.13', 'empty.c');
    cc('-Wl,--no-as-needed', '-o', needy, 'empty.c', './libcudart.so.13');
    const wheel = zip(join(folder), 'torch.whl', {
      ...cpuOnly(version),
      'torch/lib/libtorch_cpu.so': readFileSync(needy),
    });
    const errors = expectRefusal(wheel);
    expect(errors).toContain("this build needs NVIDIA's libraries libcudart.so.13");
    expect(errors).toContain('--dest libtorch-wheels');
  });
});

describe('torchformer setup refuses a folder', () => {
  it('without libtorch', () => {
    const folder = temporaryFolder();
    const errors = expectRefusal(folder);
    expect(errors).toContain(`${folder} has no lib/libtorch_cpu.so`);
    expect(errors).toContain(`or the wheel torch-${version}-….whl`);
  });

  it('with a library that is cut off, and leaves it as it is', () => {
    const folder = temporaryFolder();
    placeAll(folder, {
      ...cpuOnly(version),
      'torch/lib/libc10.so': library('c10', { sections: 3 }),
    });
    expect(expectRefusal(folder)).toContain('libc10.so is truncated');
    expect(existsSync(join(folder, 'torch/lib/libc10.so'))).toBe(true);
  });

  it('when a checksum is given, which only a file has', () => {
    const folder = temporaryFolder();
    const errors = expectRefusal(folder, ['--sha256', '0'.repeat(64)]);
    expect(errors).toContain(`--sha256 is the checksum of a file, and ${folder} is a folder`);
  });

  it('with an old libtorch', () => {
    const folder = temporaryFolder();
    placeAll(folder, cpuOnly('1.4.0'));
    const errors = expectRefusal(folder);
    expect(errors).toContain('is libtorch 1.4.0; this version of torchformer needs 2.13.0');
    expect(errors).toContain('omit --from');
  });
});

describe('torchformer setup takes', () => {
  it('a folder of wheels, as pip leaves them', () => {
    const folder = temporaryFolder();
    const cache = join(folder, 'cache');
    zip(folder, 'torch-2.12.0-cp312-cp312-linux.whl', cpuOnly('2.12.0'));
    zip(folder, `torch-${version}-cp312-cp312-linux.whl`, {
      ...wheelFiles(version),
      [`torch-${version}.dist-info/METADATA`]: 'Requires-Dist: cuda-toolkit[cublas]==13.0.2\n',
    });
    zip(folder, 'nvidia_cublas-13.1-py3-none-linux.whl', {
      'nvidia/cu13/lib/libcublas.so.13': library('cublas'),
    });
    const args = ['setup', '--cuda', '--from', folder];
    const { status, errors } = runCommand(args, {
      TORCHFORMER_CACHE: cache,
      TORCHFORMER_PYTHON: join(folder, 'none'),
    });
    expect(status, errors).toBe(0);
    const made = join(cache, `libtorch-${version}-cuda`);
    expect(existsSync(join(made, 'nvidia/cu13/lib/libcublas.so.13'))).toBe(true);
    expect(readFileSync(join(made, 'torch/version.py'), 'utf8')).toContain(version);
  });

  it('a tar.gz archive, long names and all', () => {
    const folder = temporaryFolder();
    const cache = join(folder, 'cache');
    const long = `libtorch/include/${'deep/'.repeat(40)}header.h`;
    placeAll(folder, {
      'libtorch/build-version': `${version}+cpu\n`,
      'libtorch/lib/libc10.so': library('c10'),
      'libtorch/lib/libtorch_cpu.so': library('x'.repeat(100_000)),
      [long]: 'deep',
    });
    for (const format of ['gnu', 'pax']) {
      const archive = join(folder, `${format}.tar.gz`);
      const tar = spawnSync('tar', ['-czf', archive, `--format=${format}`, 'libtorch'], {
        cwd: folder,
      });
      expect(tar.status).toBe(0);
      const { status, errors } = runCommand(['setup', '--from', archive], {
        TORCHFORMER_CACHE: cache,
      });
      expect(status, errors).toBe(0);
      const made = join(entryIn(cache), 'torch');
      expect(readFileSync(join(made, long.slice('libtorch/'.length)), 'utf8')).toBe('deep');
      expect(readFileSync(join(made, 'lib/libtorch_cpu.so')).length).toBe(100_064);
    }
  });

  it('no tar.gz archive that is cut off', () => {
    const folder = temporaryFolder();
    placeAll(folder, { 'libtorch/lib/libc10.so': library('x'.repeat(10_000)) });
    spawnSync('tar', ['-czf', 'a.tar.gz', 'libtorch'], { cwd: folder });
    const whole = readFileSync(join(folder, 'a.tar.gz'));
    writeFileSync(join(folder, 'a.tar.gz'), whole.subarray(0, whole.length - 60));
    expect(expectRefusal(join(folder, 'a.tar.gz'))).toContain('a.tar.gz cannot be unpacked');
  });

  it.each(['L', 'x'])('no tar.gz archive with a long name (type %s) that has no end', (type) => {
    const header = Buffer.alloc(512);
    header.write('libtorch/x');
    header.write('00040000000\0', 124);
    header.write(type, 156);
    header.fill(' ', 148, 156);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    const archive = gzipSync(Buffer.concat([header, Buffer.alloc(8 * 2 ** 20, 'x')]));
    const errors = expectRefusal(place(join(temporaryFolder(), 'a.tar.gz'), archive));
    expect(errors).toContain(`it contains a name of ${8 * 2 ** 20} bytes; the limit is 65536`);
  });
});

describe('a machine that has no place for libtorch', () => {
  const wheel = (folder: string): string => zip(folder, 'torch.whl', cpuOnly(version));

  it('is told that the cache is a file', () => {
    const folder = temporaryFolder();
    const cache = place(join(folder, 'cache'), 'text');
    const { status, errors } = runCommand(['setup', '--from', wheel(folder)], {
      TORCHFORMER_CACHE: cache,
    });
    expect(status).toBe(1);
    expect(errors).toContain(`the cache folder ${cache} is not writable (E`);
    expect(errors).toContain('it is a file');
    expect(readFileSync(cache, 'utf8')).toBe('text');
  });

  it('is told that the archive is larger than the disk', () => {
    const name = 'torch/lib/libtorch_cpu.so';
    // The largest size that the plain form of zip can tell.
    const claims = { [name]: { size: 0xfffffffe } };
    const files: Record<string, string | Buffer> = { ...cpuOnly(version) };
    const many = Array.from({ length: 4000 }, (_, index) => `torch/include/${index}.h`);
    for (const header of many) files[header] = '';
    const all = Object.fromEntries([...many, name].map((one) => [one, claims[name] ?? {}]));
    const archive = zip(temporaryFolder(), 'torch.whl', files, all);
    const errors = expectRefusal(archive);
    expect(errors).toMatch(
      /unpacking .*torch\.whl needs 171\d\d\.\d GB, but the disk of .* has .* free/,
    );
    expect(errors).toContain('TORCHFORMER_CACHE to a folder on another disk');
  });

  it('is told that it may not write to the cache', () => {
    const folder = temporaryFolder();
    const cache = join(folder, 'cache');
    mkdirSync(cache, { mode: 0o555 });
    chmodSync(folder, 0o755);
    const { status, errors } = runAsOther(['setup', '--from', wheel(folder)], {
      TORCHFORMER_CACHE: cache,
    });
    expect(status).toBe(1);
    expect(errors).toContain(`the cache folder ${cache} is not writable (EACCES`);
    expect(errors).toContain('set TORCHFORMER_CACHE to a writable folder');
  });

  it('is told so where it may not even look into the folder around the cache', () => {
    const folder = temporaryFolder();
    chmodSync(folder, 0o000);
    const cache = join(folder, 'deep/cache');
    const { status, errors } = runAsOther(['setup', '--from', '/x.whl'], {
      TORCHFORMER_CACHE: cache,
    });
    chmodSync(folder, 0o700);
    expect(status).toBe(1);
    expect(errors).toContain(`the cache folder ${cache} is not writable (EACCES`);
  });

  it.runIf(isRoot)('is told to name a cache when its user has no home', () => {
    const changes = { HOME: null, XDG_CACHE_HOME: null, TORCHFORMER_CACHE: null };
    for (const args of [['setup'], ['setup', '--list'], ['doctor']]) {
      const { status, output, errors } = runAsOther(args, changes);
      expect(status).toBe(1);
      expect(output + errors).toContain('set TORCHFORMER_CACHE to a folder for it');
    }
  });

  it('uses the home of its user when HOME is not set', () => {
    const { output } = runCommand(['setup', '--list', '--json'], {
      HOME: null,
      XDG_CACHE_HOME: null,
      TORCHFORMER_CACHE: null,
    });
    const { cache } = JSON.parse(output) as { cache: string };
    expect(cache).toMatch(/^\/.*\.cache\/torchformer$/);
  });
});

/** As a user who owns nothing and is in no list of users, where this process may become one. */
function runAsOther(args: readonly string[], changes: Changes) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, ...args], {
    env: environment(changes),
    encoding: 'utf8',
    ...(isRoot ? { uid: 54321, gid: 54321 } : {}),
  });
  return { status, output: stdout, errors: stderr };
}
