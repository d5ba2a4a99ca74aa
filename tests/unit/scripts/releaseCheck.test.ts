/** The rules of `npm run release:check`. */
import { expect, describe, it } from 'vitest';
import {
  handSteps,
  packageFaults,
  versionFaults,
  type PackedPackage,
  type Versions,
} from '../../../scripts/releaseCheckFacts.cjs';

const changelog = `# Changelog

About this file.

## 1.2.3 - 2026-01-31

### Added

- Something.

## 1.2.2 - 2026-01-01

- Something else.
`;

const inStep: Versions = {
  manifest: { version: '1.2.3' },
  lock: { version: '1.2.3', packages: { '': { version: '1.2.3' } } },
  changelog,
  readme: 'It fetches libtorch 2.13.0 into a cache.',
  libtorchVersion: '2.13.0',
};

describe('versions', () => {
  it('in step are fine, with a date or until the day', () => {
    expect(versionFaults(inStep)).toEqual([]);
    const open = changelog.replace('2026-01-31', 'Unreleased');
    expect(versionFaults({ ...inStep, changelog: open })).toEqual([]);
  });

  it('that the lock has otherwise are told', () => {
    const lock = { version: '1.2.2', packages: { '': { version: '1.2.3' } } };
    expect(versionFaults({ ...inStep, lock })).toEqual([
      'package-lock.json has 1.2.2, package.json 1.2.3: npm install',
    ]);
    const inner = { version: '1.2.3', packages: { '': { version: '1.2.2' } } };
    expect(versionFaults({ ...inStep, lock: inner })).toHaveLength(1);
  });

  it('without an entry in the changelog are told, with the form of one', () => {
    const manifest = { version: '1.3.0' };
    const lock = { version: '1.3.0', packages: { '': { version: '1.3.0' } } };
    const [fault] = versionFaults({ ...inStep, manifest, lock });
    expect(fault).toBe(
      'CHANGELOG.md has 1.2.3 at its top, package.json is 1.3.0: enter "## 1.3.0 - <date>", ' +
        'or "## 1.3.0 - Unreleased" until the day',
    );
  });

  it.each(['## Unreleased', '## 1.2.3', '## 1.2.3 - soon'])(
    'with the heading %s are told',
    (heading) => {
      const wrong = changelog.replace('## 1.2.3 - 2026-01-31', heading);
      expect(versionFaults({ ...inStep, changelog: wrong })[0]).toContain(
        `begins with "${heading}"`,
      );
    },
  );

  it('that the changelog says nothing about are told', () => {
    const empty = changelog.replace('### Added\n\n- Something.\n', '');
    expect(versionFaults({ ...inStep, changelog: empty })).toEqual([
      'CHANGELOG.md says nothing about 1.2.3',
    ]);
  });

  it('of libtorch that README.md does not name are told', () => {
    expect(versionFaults({ ...inStep, libtorchVersion: '2.14.0' })[0]).toContain('libtorch 2.14.0');
  });
});

const wanted = { version: '1.2.3', libtorchVersion: '2.13.0' };
const libtorchName = '@torchformer/libtorch-cpu-linux-x64';

function packed(
  changes: { main?: object; addon?: object; libtorch?: object } = {},
): PackedPackage[] {
  const main = {
    name: 'torchformer',
    version: '1.2.3',
    optionalDependencies: { '@torchformer/linux-x64': '1.2.3' },
    ...changes.main,
  };
  const addon = {
    name: '@torchformer/linux-x64',
    version: '1.2.3',
    dependencies: { [libtorchName]: '2.13.0-1' },
    ...changes.addon,
  };
  const libtorch = { name: libtorchName, version: '2.13.0-1', ...changes.libtorch };
  return [
    { manifest: main, bytes: 5e5 },
    { manifest: addon, bytes: 5e5 },
    { manifest: libtorch, bytes: 1.1e8 },
  ];
}

describe('packed packages', () => {
  it('that belong together are fine', () => {
    expect(packageFaults(packed(), wanted)).toEqual([]);
  });

  it.each([
    ['another version of one', { addon: { version: '1.2.2' } }, 'is 1.2.2, wanted is 1.2.3'],
    ['another libtorch', { libtorch: { version: '2.14.0-1' } }, 'wanted is 2.13.0-…'],
    [
      'a range in place of a version',
      { main: { optionalDependencies: { '@torchformer/linux-x64': '^1.2.3' } } },
      'must be exactly 1.2.3',
    ],
    ['an addon without its libtorch', { addon: { dependencies: {} } }, 'must be exactly 2.13.0-1'],
    [
      'a script at installation',
      { main: { scripts: { install: 'node-gyp' } } },
      'script "install"',
    ],
  ])('with %s are told', (_name, changes, expected) => {
    expect(packageFaults(packed(changes), wanted).join('\n')).toContain(expected);
  });

  it('that are too large, or missing, are told', () => {
    const [main, addon] = packed() as [PackedPackage, PackedPackage];
    const faults = packageFaults([{ ...main, bytes: 3e6 }, addon], wanted);
    expect(faults).toEqual([
      'artifacts/ has no package of the kind libtorch',
      'torchformer has 3.0 MB packed, more than 2',
    ]);
  });
});

describe('what is left to do by hand', () => {
  const tarballs = [
    { file: 'main.tgz', kind: 'main' },
    { file: 'libtorch.tgz', kind: 'libtorch' },
    { file: 'addon.tgz', kind: 'addon' },
  ] as const;

  it('publishes what others need first', () => {
    const files = handSteps('1.2.3', changelog, tarballs).filter((step) => step.includes('.tgz'));
    expect(files.map((step) => step.split(' ').at(-1))).toEqual([
      'libtorch.tgz',
      'addon.tgz',
      'main.tgz',
    ]);
  });

  it('has the date of the changelog only where it is missing', () => {
    const open = changelog.replace('2026-01-31', 'Unreleased');
    expect(handSteps('1.2.3', open, tarballs)[0]).toContain('write the date');
    expect(handSteps('1.2.3', changelog, tarballs)[0]).toBe('git tag v1.2.3 && git push --tags');
  });
});
