/**
 * The packages as packed, installed without a registry: quick enough for every run of the tests. What
 * users do with them is in `npm run test:install`.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addonManifest, libtorchManifest, mainManifest } from '../../scripts/pack/manifests.cjs';
import { npm } from '../../scripts/pack/npm.cjs';
import { packPackages } from '../../scripts/pack/packages.cjs';
import { libtorchVersion, packageVersion } from '../../dist/runtime/package.js';
import { ownPlatform, platforms } from '../../dist/runtime/native/platform.js';
import { evaluate, nowhere, root, runNode, writeFiles } from '../process/support.js';
import { added, addition } from './programs.js';

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  version: string;
} & Record<string, unknown>;

/** The packages that users get with ours, as the lock file of this checkout has them. */
function dependencies(): string[] {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; devOptional?: boolean; optional?: boolean }>;
  };
  return Object.entries(lock.packages)
    .filter(([path, { dev, devOptional, optional }]) => path && !dev && !devOptional && !optional)
    .map(([path]) => join(root, path));
}

/** Relative links of a page, without the place in the file that they lead to. */
function linksOf(page: string): string[] {
  const links = [...page.matchAll(/\]\(([^)\s#]+)(?:#[^)\s]*)?\)/g)].map(
    ([, link]) => link as string,
  );
  // `call(…)(x)` in code is no link.
  return links.filter((link) => !link.includes(':') && /\.\w+$|\//.test(link));
}

interface Tarball {
  readonly name: string;
  readonly filename: string;
}

describe('the packed packages', () => {
  let folder: string;
  let packed: Awaited<ReturnType<typeof packPackages>>;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'torchformer-packed-'));
    packed = await packPackages({ output: folder, only: ['main', 'addon'] });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** The paths in the main package. */
  const filesOfMain = () =>
    readdirSync(join(folder, 'folders/main'), { recursive: true, encoding: 'utf8' });

  it('have every file that their pages link to', () => {
    const files = new Set(filesOfMain());
    const pages = [...files].filter((name) => name.endsWith('.md'));
    expect(pages).toContain('README.md');
    expect(pages).toContain(join('docs', 'install.md'));
    const dead = pages.flatMap((page) =>
      linksOf(readFileSync(join(folder, 'folders/main', page), 'utf8'))
        .filter((link) => !files.has(join(dirname(page), link)))
        .map((link) => `${page}: ${link}`),
    );
    expect(dead).toEqual([]);
  });

  it('have the sources that their source maps refer to', () => {
    const maps = filesOfMain().filter((name) => name.endsWith('.map'));
    expect(maps.length).toBeGreaterThan(100);
    const without = maps.filter((name) => {
      const map = JSON.parse(readFileSync(join(folder, 'folders/main', name), 'utf8')) as {
        sources: string[];
        sourcesContent?: (string | null)[];
      };
      return !map.sources.every((_, index) => (map.sourcesContent?.[index] ?? '') !== '');
    });
    expect(without).toEqual([]);
  });

  it('are as large as docs/install.md says', () => {
    const page = readFileSync(join(root, 'docs/install.md'), 'utf8');
    const kernels = existsSync(join(folder, 'folders/addon/libtorchformer_cuda.so'));
    for (const { name, size } of packed) {
      const row = page.split('\n').find((line) => line.startsWith(`| \`${name}\``));
      const told = Number(/([\d.]+) MB +\|$/.exec(row ?? '')?.[1]);
      // Without the CUDA kernels, which not every machine builds, the addon is a third of its size.
      if (name !== 'torchformer' && !kernels) continue;
      expect(Math.abs(size / 1e6 / told - 1), `${name}: ${size} bytes`).toBeLessThan(0.2);
    }
  });

  it('install from their tarballs, without scripts or network, and compute', () => {
    const answer = JSON.parse(
      npm(['pack', '--json', '--ignore-scripts', ...dependencies()], { cwd: folder }),
    ) as Record<string, Tarball>;

    // 350 MB of libraries need no copy to see whether they are found.
    const libtorch = join(folder, 'libtorch');
    const libtorchManifestHere = libtorchManifest(manifest, ownPlatform, libtorchVersion);
    writeFiles(libtorch, {
      'package.json': JSON.stringify(libtorchManifestHere),
      'build-version': `${libtorchVersion}+cpu\n`,
    });
    const found = evaluate('searchLibtorch().found.libraries').value as string;
    symlinkSync(found, join(libtorch, 'lib'));

    const project = join(folder, 'project');
    mkdirSync(project);
    writeFiles(project, {
      'package.json': JSON.stringify({
        private: true,
        dependencies: {
          ...Object.fromEntries(
            Object.values(answer).map(({ name, filename }) => [name, `file:../${filename}`]),
          ),
          ...Object.fromEntries(packed.map(({ name, tarball }) => [name, `file:${tarball}`])),
          [ownPlatform.libtorchPackage]: 'file:../libtorch',
        },
      }),
      'add.mjs': addition,
    });
    npm(['install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: project });
    const { status, output, errors } = runNode(['add.mjs'], nowhere(folder), project);
    expect({ status, output, errors }).toEqual({ status: 0, output: `${added}\n`, errors: '' });
  });
});

describe('the manifest', () => {
  const released = platforms.filter((platform) => platform.released);

  it('of the main package wants the platform packages, each of exactly its own version', () => {
    const { optionalDependencies } = mainManifest(manifest, released);
    expect(optionalDependencies).toEqual(
      Object.fromEntries(released.map(({ addonPackage }) => [addonPackage, manifest.version])),
    );
  });

  it('of the main package has no scripts, and keeps npm from building', () => {
    const packed = mainManifest(manifest, released);
    expect(packed).toMatchObject({ gypfile: false, dependencies: manifest['dependencies'] });
    expect(packed).not.toHaveProperty('scripts');
    expect(packed).not.toHaveProperty('devDependencies');
    expect(manifest['files']).not.toContain('binding.gyp');
  });

  it('of a platform package names its machine, and one exact packing of libtorch', () => {
    const packed = addonManifest(manifest, ownPlatform, libtorchVersion);
    expect(packed).toMatchObject({
      name: `@torchformer/${process.platform}-${process.arch}`,
      version: manifest.version,
      os: [process.platform],
      cpu: [process.arch],
      preferUnplugged: true,
    });
    const { version } = libtorchManifest(manifest, ownPlatform, libtorchVersion);
    expect(packed['dependencies']).toEqual({ [ownPlatform.libtorchPackage]: version });
    expect(version).toMatch(new RegExp(`^${libtorchVersion.replaceAll('.', '\\.')}-[1-9]\\d*$`));
  });

  it('has the version that the runtime tells', () => {
    expect(packageVersion()).toBe(manifest.version);
  });
});
