import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  entryIn,
  library,
  place,
  placeAll,
  pythonWithWheel,
  version,
  wheelFiles,
  zip,
} from '../libtorchFiles.js';
import {
  environment,
  nowhere,
  root,
  runCommand,
  runNode,
  runScript,
  temporaryFolder,
} from '../support.js';

/** A process that is no more, as a lock names it. */
function deadOwner(): string {
  const { pid } = spawnSync('true');
  return `${pid} ${hostname()}`;
}

/** A cache with the CPU build, an old CUDA one, a half-finished download and someone else's folder. */
function filledCache(): string {
  const cache = temporaryFolder();
  placeAll(entryIn(cache), wheelFiles(version));
  placeAll(join(cache, 'libtorch-2.12.0-cuda'), wheelFiles('2.12.0'));
  place(join(cache, 'downloads/0123456789ab-torch.whl.part'), 'half');
  place(join(cache, 'downloads/0123456789ab-torch.whl.part.json'), '{}');
  place(join(cache, 'bench/data'), 'mine');
  return cache;
}

const list = (cache: string, ...args: string[]) =>
  runCommand(['setup', '--list', ...args], nowhere(cache));

describe('torchformer setup --list', () => {
  it('tells version, build, size, place and use of what is there', () => {
    const cache = filledCache();
    const { status, output } = list(cache);
    expect(status).toBe(0);
    const lines = output.trimEnd().split('\n');
    expect(lines).toHaveLength(3);
    expect(lines[0]).toMatch(/^2\.12\.0 +cuda +1 kB .*libtorch-2\.12\.0-cuda {2}\(not in use\)$/);
    expect(lines[1]).toMatch(/^2\.13\.0 +cpu +1 kB .*libtorch-2\.13\.0-cpu {2}\(in use\)$/);
    expect(lines[2]).toMatch(/^unfinished +1 kB .*torch\.whl\.part$/);
  });

  it('tells the same as one object for programs', () => {
    const cache = filledCache();
    const value = JSON.parse(list(cache, '--json').output) as unknown;
    expect(value).toMatchObject({
      cache,
      entries: [
        { version: '2.12.0', variant: 'cuda', linkedTo: null, inUse: false, problem: null },
        { version, variant: 'cpu', path: entryIn(cache), linkedTo: null, inUse: true },
      ],
      downloads: [{ path: join(cache, 'downloads/0123456789ab-torch.whl.part'), bytes: 4 }],
    });
  });

  it('tells of a link where it leads, and of a broken build what is wrong', () => {
    const cache = temporaryFolder();
    const elsewhere = temporaryFolder();
    placeAll(elsewhere, wheelFiles(version));
    runCommand(['setup', '--from', elsewhere], { TORCHFORMER_CACHE: cache });
    placeAll(join(cache, `libtorch-${version}-cuda`), { 'torch/lib/libtorch_cpu.so': 'x' });
    const { output } = list(cache);
    expect(output).toContain(`a link  ${entryIn(cache)} -> ${elsewhere}/torch  (in use)`);
    expect(output).toContain('(has lib/libtorch_cpu.so but no lib/libc10.so)');
  });

  it('says so when there is nothing, and makes nothing', () => {
    const cache = join(temporaryFolder(), 'none');
    expect(list(cache)).toMatchObject({ status: 0, output: `${cache} has no libtorch\n` });
    expect(existsSync(cache)).toBe(false);
  });

  it.each([
    ['--force', 'cannot be used with'],
    ['--remove', 'cannot be used with'],
  ])('does not go with %s', (flag, reason) => {
    expect(list(temporaryFolder(), flag).errors).toContain(reason);
  });

  it('is what --json belongs to', () => {
    const { status, errors } = runCommand(['setup', '--json'], nowhere(temporaryFolder()));
    expect(status).toBe(1);
    expect(errors).toContain('--json requires --list');
  });
});

describe('torchformer setup --remove', () => {
  const remove = (cache: string, ...what: string[]) =>
    runCommand(['setup', '--remove', ...what], nowhere(cache));

  it('takes one build away and leaves the rest', () => {
    const cache = filledCache();
    const { status, errors } = remove(cache, 'cpu');
    expect(status).toBe(0);
    expect(errors).toBe(`removed ${entryIn(cache)}\n`);
    expect(readdirSync(cache).sort()).toEqual(['bench', 'downloads', 'libtorch-2.12.0-cuda']);
  });

  it('takes away all that set-up put there, and nothing else', () => {
    const cache = filledCache();
    const [pid, host] = deadOwner().split(' ');
    place(join(cache, `.setup-${pid}-1-${host}/ready/x`), '');
    expect(remove(cache).status).toBe(0);
    expect(readdirSync(cache)).toEqual(['bench']);
  });

  it('leaves the folder that a link leads to', () => {
    const cache = temporaryFolder();
    const elsewhere = temporaryFolder();
    placeAll(elsewhere, wheelFiles(version));
    runCommand(['setup', '--from', elsewhere], { TORCHFORMER_CACHE: cache });
    expect(remove(cache, 'all').status).toBe(0);
    expect(readdirSync(cache)).toEqual([]);
    expect(existsSync(join(elsewhere, 'torch/lib/libtorch_cpu.so'))).toBe(true);
  });

  it('says so when there is nothing', () => {
    expect(remove(temporaryFolder(), 'cuda')).toMatchObject({
      status: 0,
      errors: 'there was nothing to remove\n',
    });
  });

  it('knows no other build', () => {
    const { status, errors } = remove(temporaryFolder(), 'gpu');
    expect(status).toBe(1);
    expect(errors).toContain('Allowed choices are cpu, cuda, all');
  });
});

describe('torchformer setup with something there already', () => {
  it.each([
    [
      'a link to nowhere',
      (entry: string) => symlinkSync('/gone', entry),
      'links to /gone, which does not exist',
    ],
    [
      'a folder with one',
      (entry: string) => {
        mkdirSync(entry);
        symlinkSync('/gone', join(entry, 'torch'));
      },
      'links to /gone, which does not exist',
    ],
    ['a file', (entry: string) => place(entry, ''), 'is a file, but must be a folder'],
  ])('lists and replaces %s in the place of a build', (_, make, text) => {
    const cache = temporaryFolder();
    make(entryIn(cache));
    const { output } = list(cache);
    expect(output).toContain(`(${text})`);
    expect(output).toContain('`torchformer setup --force`');

    const folder = temporaryFolder();
    const wheel = zip(folder, `torch-${version}-py3-none-any.whl`, wheelFiles(version));
    const { status, errors } = runCommand(['setup'], {
      TORCHFORMER_CACHE: cache,
      TORCHFORMER_PYTHON: pythonWithWheel(folder, wheel),
    });
    expect(status, errors).toBe(0);
    expect(errors).toContain(`replacing ${entryIn(cache)}: ${text}`);
    expect(readdirSync(cache)).toEqual([`libtorch-${version}-cpu`]);
  });

  it('replaces a build in the cache that is broken', () => {
    const folder = temporaryFolder();
    const cache = join(folder, 'cache');
    placeAll(entryIn(cache), {
      ...wheelFiles(version),
      'torch/lib/libtorch_cpu.so': library('cpu', { sections: 9 }),
    });
    const wheel = zip(folder, `torch-${version}-py3-none-any.whl`, wheelFiles(version));
    const { status, errors } = runCommand(['setup'], {
      TORCHFORMER_CACHE: cache,
      TORCHFORMER_PYTHON: pythonWithWheel(folder, wheel),
    });
    expect(status, errors).toBe(0);
    expect(errors).toContain('libtorch_cpu.so is truncated');
    expect(readFileSync(join(entryIn(cache), 'torch/lib/libtorch_cpu.so'))).toEqual(library('cpu'));
  });

  it('fetches nothing when the npm package with the libraries is installed', () => {
    const copy = temporaryFolder();
    for (const part of ['package.json', 'dist', 'bin']) {
      cpSync(join(root, part), join(copy, part), { recursive: true });
    }
    const modules = join(copy, 'node_modules');
    mkdirSync(modules);
    for (const name of readdirSync(join(root, 'node_modules'))) {
      if (name !== '@torchformer')
        symlinkSync(join(root, 'node_modules', name), join(modules, name));
    }
    const name = `@torchformer/libtorch-cpu-${process.platform}-${process.arch}`;
    placeAll(join(modules, name), {
      'package.json': JSON.stringify({ name, version: '0.0.0' }),
      'lib/libc10.so': library('c10'),
      'lib/libtorch_cpu.so': library('cpu'),
    });
    const changes = nowhere(join(copy, 'cache'));
    const setup = (...args: string[]) =>
      runNode([join(copy, 'bin/torchformer.js'), 'setup', ...args], changes);
    const { status, errors } = setup();
    expect(status, errors).toBe(0);
    expect(errors).toContain(`in the npm package ${name}: ${modules}`);
    expect(existsSync(join(copy, 'cache'))).toBe(false);
    // It has no CUDA.
    expect(setup('--cuda').status).toBe(1);
    // Nor is a place for the cache needed, where there is no home.
    if (process.getuid?.() !== 0) return;
    spawnSync('chmod', ['-R', 'a+rX', copy]);
    const other = spawnSync(process.execPath, [join(copy, 'bin/torchformer.js'), 'setup'], {
      env: environment({ HOME: null, XDG_CACHE_HOME: null, TORCHFORMER_CACHE: null }),
      encoding: 'utf8',
      uid: 54321,
      gid: 54321,
    });
    expect(other.status, other.stderr).toBe(0);
    expect(other.stderr).toContain(`libtorch is already in the npm package ${name}`);
  });

  it('says that a variable wins over what it brought', () => {
    const folder = temporaryFolder();
    const { status, errors } = runCommand(
      ['setup', '--from', zip(folder, 'torch.whl', wheelFiles(version))],
      {
        TORCHFORMER_CACHE: join(folder, 'cache'),
        LIBTORCH: '/opt/mine',
        TORCHFORMER_LIBTORCH: null,
      },
    );
    expect(status).toBe(0);
    expect(errors).toContain('LIBTORCH is set: /opt/mine is used instead of the libtorch of setup');
  });

  it('gives the commands for no network when pip cannot fetch', () => {
    const folder = temporaryFolder();
    const { status, errors } = runCommand(['setup'], {
      TORCHFORMER_CACHE: join(folder, 'cache'),
      PIP_NO_INDEX: '1',
      PIP_FIND_LINKS: folder,
      PIP_CONFIG_FILE: '/dev/null',
    });
    expect(status).toBe(1);
    expect(errors).toContain(`pip could not download torch==${version}; see its output above`);
    expect(errors).toContain('python3 -m pip download');
    expect(errors).toContain('npx torchformer setup --from libtorch-wheels');
  });
});

describe('the lock of set-up', () => {
  /** Starts `count` that each hold the lock for a while; prints when each had it. */
  const contend = (lock: string, count: number): { start: number; end: number }[] => {
    const { output, errors } = runScript(`
      import { fork } from 'node:child_process';
      import { writeFileSync } from 'node:fs';
      const one = (index) => new Promise((resolve) => {
        const child = fork(process.argv[1], [], { execArgv: [], stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
        let text = '';
        child.stdout.on('data', (part) => (text += part));
        child.on('close', () => resolve(JSON.parse(text)));
      });
      const file = ${JSON.stringify(`${lock}.holder.mjs`)};
      writeFileSync(file, \`
        import { withLock } from '${root}dist/runtime/lock.js';
        import { setTimeout as sleep } from 'node:timers/promises';
        await withLock(${JSON.stringify(lock)}, () => {}, async () => {
          const start = Date.now();
          await sleep(150);
          console.log(JSON.stringify({ start, end: Date.now() }));
        });
        process.disconnect();
      \`);
      process.argv[1] = file;
      console.log(JSON.stringify(await Promise.all(Array.from({ length: ${count} }, (_, i) => one(i)))));
    `);
    expect(errors).toBe('');
    return (JSON.parse(output) as { start: number; end: number }[]).sort(
      (a, b) => a.start - b.start,
    );
  };

  it('is taken over from a dead process by one at a time', () => {
    const lock = join(temporaryFolder(), 'lock');
    place(lock, deadOwner());
    const times = contend(lock, 4);
    expect(times).toHaveLength(4);
    times.slice(1).forEach(({ start }, index) => {
      expect(start).toBeGreaterThanOrEqual(times[index]?.end ?? Infinity);
    });
    expect(existsSync(lock)).toBe(false);
  });

  it('is taken over from another machine when nobody has touched it for a while', () => {
    const lock = join(temporaryFolder(), 'lock');
    place(lock, '1 another-machine');
    const longAgo = new Date(Date.now() - 5 * 60_000);
    utimesSync(lock, longAgo, longAgo);
    expect(contend(lock, 1)).toHaveLength(1);
  });

  it.each([
    ['a process that lives, as another one has its number by now', '1'],
    ['this very process, as in a container that is started anew', '${process.pid}'],
  ])('is taken over from %s, when nobody has touched it for long', (_, pid) => {
    const folder = temporaryFolder();
    const lock = place(join(folder, 'lock'), '');
    const script = `
      import { withLock } from '${root}dist/runtime/lock.js';
      import { utimesSync, writeFileSync } from 'node:fs';
      import { hostname } from 'node:os';
      const lock = ${JSON.stringify(lock)};
      writeFileSync(lock, \`${pid} \${hostname()}\`);
      utimesSync(lock, 1e9, 1e9);
      await withLock(lock, console.log, async () => console.log('has it'));
    `;
    expect(runScript(script)).toEqual({ status: 0, output: 'has it\n', errors: '' });
    expect(existsSync(lock)).toBe(false);
  });

  it('is not taken over from another thread of the same process', () => {
    const lock = join(temporaryFolder(), 'lock');
    const script = `
      import { withLock } from '${root}dist/runtime/lock.js';
      import { once } from 'node:events';
      import { Worker } from 'node:worker_threads';
      const lock = ${JSON.stringify(lock)};
      const code = \`
        import('${root}dist/runtime/lock.js').then(({ withLock }) =>
          withLock(\${JSON.stringify(lock)}, () => console.log('waits'), async () => {
            console.log('has it');
          }));
      \`;
      let worker;
      await withLock(lock, () => {}, async () => {
        worker = new Worker(code, { eval: true, stdout: true });
        worker.stdout.pipe(process.stdout);
        await once(worker.stdout, 'data');
        console.log('gives it back');
      });
      await once(worker, 'exit');
    `;
    const { status, output, errors } = runScript(script);
    expect({ status, errors }).toEqual({ status: 0, errors: '' });
    expect(output.split('\n').sort()).toEqual(['', 'gives it back', 'has it', 'waits']);
  });

  it('that was taken over meanwhile is left to its new owner', () => {
    const lock = join(temporaryFolder(), 'lock');
    const script = `
      import { withLock } from '${root}dist/runtime/lock.js';
      import { writeFileSync } from 'node:fs';
      const lock = ${JSON.stringify(lock)};
      await withLock(lock, () => {}, async () => writeFileSync(lock, '1 another-machine'));
    `;
    expect(runScript(script)).toMatchObject({ status: 0, errors: '' });
    expect(readFileSync(lock, 'utf8')).toBe('1 another-machine');
  });

  it.each([
    ['a folder', mkdirSync, 'is a folder'],
    [
      'a link to nowhere',
      (path: string) => symlinkSync('/nowhere/at/all', path),
      'is not a regular file',
    ],
  ])('is refused where %s has its name', (_, make, text) => {
    const folder = temporaryFolder();
    const lock = `${entryIn(folder)}.lock`;
    make(lock);
    const wheel = zip(folder, 'torch.whl', wheelFiles(version));
    const { status, errors } = runCommand(['setup', '--from', wheel], {
      TORCHFORMER_CACHE: folder,
    });
    expect(status).toBe(1);
    expect(errors).toContain(`${lock} ${text}, but must be a lock file: remove it`);
  });

  it('of a machine that is alive is waited for', () => {
    const folder = temporaryFolder();
    place(join(folder, `libtorch-${version}-cpu.lock`), '1 another-machine');
    const wheel = zip(folder, 'torch.whl', wheelFiles(version));
    const { stderr, signal } = spawnSync(
      process.execPath,
      [join(root, 'bin/torchformer.js'), 'setup', '--from', wheel],
      { env: { ...process.env, TORCHFORMER_CACHE: folder }, encoding: 'utf8', timeout: 2500 },
    );
    expect(signal).toBe('SIGTERM');
    expect(stderr).toContain(
      'waiting for another setup to end (process 1 on another-machine, lock file ' +
        `${entryIn(folder)}.lock)`,
    );
  });
});
