/** What users do: install from a registry with each package manager, then train. */
import { chmodSync, lstatSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root } from '../process/support.js';
import { Consumers, readableByConsumer, type Project, type Result } from './consumer.js';
import { added, addition, bundled, required, trained, training } from './programs.js';
import { startRegistry, type Registry } from './registry.js';
import { npmScript, otherNodes, tool } from './tools.js';

const platform = `${process.platform}-${process.arch}`;
const artifacts = join(root, 'artifacts');
const tarballs = readdirSync(artifacts).filter((name) => name.endsWith('.tgz'));

let registry: Registry;
let consumers: Consumers;
/** Installed with npm; most tests look at this one, and leave it as it is. */
let project: Project;
let installation: Result;
const figures: string[] = [];

beforeAll(async () => {
  consumers = new Consumers();
  registry = await startRegistry(
    join(consumers.folder, 'registry'),
    tarballs.map((name) => join(artifacts, name)),
  );
  consumers.registry = registry.url;
  for (const file of [process.execPath, npmScript()]) {
    expect(readableByConsumer(file), `${file} for a user without rights`).toBe(true);
  }
  project = consumers.project('npm', { 'train.mjs': training });
  installation = npm(project, ['install', 'torchformer', '--ignore-scripts']);
});

afterAll(() => {
  registry?.stop();
  consumers?.remove();
  console.log(figures.join('\n'));
});

function npm(where: Project, args: readonly string[]): Result {
  return where.succeed([npmScript(), ...args]);
}

/** Trains, and notes what the installation took. */
function checkTraining(
  name: string,
  where: Project,
  install: Result,
  run: readonly string[],
): void {
  const { output, seconds } = where.succeed(run);
  expect(output.trim().split('\n').at(-1)).toBe(trained);
  figures.push(
    `${name.padEnd(22)} installed in ${install.seconds.toFixed(1).padStart(5)} s, ` +
      `${where.megabytes().toFixed(0)} MB unpacked, trained in ${seconds.toFixed(1)} s`,
  );
}

describe('with nothing but Node, no rights and no scripts, it installs and trains with', () => {
  it('npm', () => {
    checkTraining('npm', project, installation, ['train.mjs']);
  });

  it('pnpm', () => {
    const where = consumers.project('pnpm', { 'train.mjs': training });
    const args = [tool('pnpm/bin/pnpm.cjs'), 'add', 'torchformer', '--ignore-scripts'];
    checkTraining('pnpm', where, where.succeed(args), ['train.mjs']);
  });

  it('yarn 1', () => {
    const where = consumers.project('yarn1', { 'train.mjs': training });
    const args = [tool('yarn/bin/yarn.js'), 'add', 'torchformer', '--ignore-scripts'];
    checkTraining('yarn 1', where, where.succeed(args), ['train.mjs']);
  });

  it.each(['node-modules', 'pnpm', 'pnp'])('yarn 4, linker %s', (linker) => {
    const where = consumers.project(`yarn4-${linker}`, { 'train.mjs': training, 'yarn.lock': '' });
    const environment = { YARN_NODE_LINKER: linker, YARN_ENABLE_GLOBAL_CACHE: 'false' };
    const yarn = tool('@yarnpkg/cli-dist/bin/yarn.js');
    const install = where.succeed([yarn, 'add', 'torchformer'], { environment });
    // Plug'n'Play has no node_modules; its own command teaches Node to do without.
    const pnp = linker === 'pnp';
    const run = pnp ? ['--require', './.pnp.cjs', '--loader', './.pnp.loader.mjs'] : [];
    checkTraining(`yarn 4 (${linker})`, where, install, [...run, 'train.mjs']);
  });
});

describe('npm builds nothing', () => {
  it('though scripts may run: neither at install nor from the lock file', () => {
    const where = consumers.project('scripts', { 'add.mjs': addition });
    npm(where, ['install', 'torchformer']);
    rmSync(join(where.folder, 'node_modules'), { recursive: true });
    npm(where, ['ci']);
    const lock = JSON.parse(readFileSync(join(where.folder, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { hasInstallScript?: boolean }>;
    };
    const scripted = Object.entries(lock.packages).filter(([, entry]) => entry.hasInstallScript);
    expect(scripted.map(([name]) => name)).toEqual([]);
    expect(where.succeed(['add.mjs']).output.trim()).toBe(added);
  });

  it('as the registry knows of no script to run', async () => {
    const answer = await fetch(`${registry.url}torchformer`);
    const { versions } = (await answer.json()) as { versions: Record<string, object> };
    const [manifest] = Object.values(versions);
    expect(manifest).toMatchObject({
      gypfile: false,
      optionalDependencies: { [`@torchformer/${platform}`]: expect.any(String) as string },
    });
    expect(manifest).not.toHaveProperty('scripts.install');
  });
});

describe('what is installed', () => {
  it('serves require and import', () => {
    project.write('add.mjs', addition);
    project.write('add.cjs', required);
    expect(project.succeed(['add.mjs']).output.trim()).toBe(added);
    expect(project.succeed(['add.cjs']).output.trim()).toBe(added);
  });

  it('has types for the oldest TypeScript that docs/install.md names', () => {
    const page = readFileSync(join(root, 'docs/install.md'), 'utf8');
    expect(page).toContain('TypeScript 5.3 or later');
    const files = ['esm.mts', 'cjs.cts'];
    for (const name of files) {
      project.write(name, readFileSync(join(root, 'tests/types/consumers', name), 'utf8'));
    }
    const resolution = ['--module', 'nodenext', '--moduleResolution', 'nodenext'];
    const types = ['--typeRoots', join(root, 'node_modules/@types'), '--types', 'node'];
    const options = ['--noEmit', '--strict', '--target', 'ES2022', ...resolution, ...types];
    project.succeed([tool('typescript-5.3/bin/tsc'), ...options, ...files]);
  });

  it('trains without any network', () => {
    const { output } = project.succeed(['train.mjs'], { offline: true });
    expect(output.trim().split('\n').at(-1)).toBe(trained);
  });

  it.each(otherNodes())('trains on %s', (name) => {
    const { output } = project.succeed(['train.mjs'], { node: tool(`${name}/bin/node`) });
    expect(output.trim().split('\n').at(-1)).toBe(trained);
  });

  it('works where nothing may be written', () => {
    const where = consumers.project('read only', { 'add.mjs': addition });
    npm(where, ['install', 'torchformer', '--ignore-scripts']);
    changeRights(where.folder, 0o555);
    expect(where.succeed(['add.mjs']).output.trim()).toBe(added);
    expect(where.run(['-e', 'require("fs").writeFileSync("node_modules/x", "")']).status).toBe(1);
    changeRights(where.folder, 0o755);
  });

  it('works in a folder with spaces and letters of other scripts', () => {
    const where = consumers.project('Ünïcödé und 中文 mit Leerzeichen', { 'add.mjs': addition });
    npm(where, ['install', 'torchformer', '--ignore-scripts']);
    expect(where.succeed(['add.mjs']).output.trim()).toBe(added);
  });

  it('says what to run when the libtorch package is not there', () => {
    const folder = join(project.folder, 'node_modules/@torchformer');
    const name = `libtorch-cpu-${platform}`;
    renameSync(join(folder, name), join(folder, 'away'));
    try {
      const { status, errors } = project.run(['add.mjs']);
      expect(status).toBe(1);
      expect(errors).toContain('ERR_NATIVE_LOAD');
      expect(errors).toMatch(new RegExp(`Run \`npm install @torchformer/${name}@[\\d.]+-\\d+\``));
    } finally {
      renameSync(join(folder, 'away'), join(folder, name));
    }
  });

  it('refuses a second copy of the package in one process, naming both', () => {
    const where = consumers.project('copies');
    npm(where, ['install', 'torchformer', 'second@npm:torchformer', '--ignore-scripts']);
    where.write(
      'add.mjs',
      `import { tensor } from 'torchformer';
       import * as second from 'second';
       console.log(tensor([1]).add(1).item());
       second.tensor([2]);`,
    );
    const { status, output, errors } = where.run(['add.mjs']);
    expect([status, output]).toEqual([1, '2\n']);
    expect(errors).toContain('ERR_NATIVE_LOAD');
    for (const name of ['torchformer', 'second']) {
      expect(errors).toContain(join(where.folder, 'node_modules', name));
    }
  });
});

describe('a bundle made by esbuild', () => {
  it.each([
    ['with all packages outside, as a module', 'esm', { packages: 'external' }],
    [
      'with the package inside and what is native outside, in CommonJS',
      'cjs',
      { external: ['@torchformer/*', 'tokenizers'] },
    ],
  ])('%s, loads', async (_name, format, outside) => {
    project.write('entry.ts', bundled);
    const esbuild = (await import(tool('esbuild/lib/main.js'))) as {
      build(options: object): Promise<unknown>;
    };
    const outfile = join(project.folder, format === 'esm' ? 'bundle.mjs' : 'bundle.cjs');
    await esbuild.build({
      entryPoints: [join(project.folder, 'entry.ts')],
      outfile,
      bundle: true,
      platform: 'node',
      format,
      logLevel: 'error',
      ...outside,
    });
    expect(project.succeed([outfile]).output.trim()).toBe(added);
  });
});

function changeRights(folder: string, mode: number): void {
  chmodSync(folder, mode);
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, name);
    if (!lstatSync(path).isSymbolicLink()) chmodSync(path, mode);
  }
}
