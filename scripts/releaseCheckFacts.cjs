// The rules of a release that need no build. Each returns its faults as sentences; [] if there are none.
'use strict';

/**
 * What has to match before a release.
 *
 * @typedef {{
 *   readonly manifest: { readonly version: string },
 *   readonly lock: {
 *     readonly version: string,
 *     readonly packages: Readonly<Record<string, { readonly version?: string }>>,
 *   },
 *   readonly changelog: string,
 *   readonly readme: string,
 *   readonly libtorchVersion: string,
 * }} Versions
 */

/**
 * The manifest and size of a tarball.
 *
 * @typedef {{
 *   readonly manifest: Readonly<Record<string, unknown>> & { name: string, version: string },
 *   readonly bytes: number,
 * }} PackedPackage
 */

/** The topmost entry: `## 1.2.3 - 2026-01-31`, or `- Unreleased` until the release date. */
function topEntry(changelog) {
  const [, heading = '', text = ''] =
    /^## (.*)\n([\s\S]*?)(?=^## |$(?![\s\S]))/m.exec(changelog) ?? [];
  const parts = /^\[?(\d+\.\d+\.\d+[\w.-]*)\]? - (\d{4}-\d{2}-\d{2}|Unreleased)$/.exec(heading);
  return {
    heading,
    version: parts?.[1] ?? null,
    date: parts === null || parts[2] === 'Unreleased' ? null : parts[2],
    isEmpty: !/^[-*] /m.test(text),
  };
}

function changelogFaults(version, changelog) {
  const { heading, version: entered, isEmpty } = topEntry(changelog);
  const form = `"## ${version} - <date>", or "## ${version} - Unreleased" until the day`;
  if (entered === null) return [`CHANGELOG.md begins with "## ${heading}": it must be ${form}`];
  if (entered !== version) {
    return [`CHANGELOG.md has ${entered} at its top, package.json is ${version}: enter ${form}`];
  }
  return isEmpty ? [`CHANGELOG.md says nothing about ${version}`] : [];
}

/**
 * Checks that the versions in package.json, its lock file, the changelog and README.md match.
 *
 * @param {Versions} versions
 * @returns {string[]}
 */
function versionFaults({ manifest, lock, changelog, libtorchVersion, readme }) {
  const { version } = manifest;
  const faults = [];
  for (const [place, found] of [
    ['package-lock.json', lock.version],
    ['package-lock.json, packages[""]', lock.packages?.['']?.version],
  ]) {
    if (found !== version)
      faults.push(`${place} has ${found}, package.json ${version}: npm install`);
  }
  faults.push(...changelogFaults(version, changelog));
  if (!readme.includes(`libtorch ${libtorchVersion}`)) {
    faults.push(
      `README.md does not name libtorch ${libtorchVersion}, which the addon is built for`,
    );
  }
  return faults;
}

/** Maximum size of each tarball in MB, to catch mistakes in `files`. npm's own limit is about 230. */
const limits = { main: 2, addon: 5, libtorch: 150 };

function kindOf(name) {
  if (name === 'torchformer') return 'main';
  return name.startsWith('@torchformer/libtorch-') ? 'libtorch' : 'addon';
}

/**
 * Checks that the packed packages match each other.
 *
 * @param {readonly PackedPackage[]} packages
 * @param {{ version: string, libtorchVersion: string }} wanted
 * @returns {string[]}
 */
function packageFaults(packages, { version, libtorchVersion }) {
  const faults = [];
  const byKind = new Map(packages.map((one) => [kindOf(one.manifest.name), one.manifest]));
  for (const kind of Object.keys(limits)) {
    if (!byKind.has(kind)) faults.push(`artifacts/ has no package of the kind ${kind}`);
  }
  for (const { manifest, bytes } of packages) {
    const { name, scripts = {} } = manifest;
    const kind = kindOf(name);
    const megabytes = bytes / 1e6;
    if (megabytes > limits[kind]) {
      faults.push(`${name} has ${megabytes.toFixed(1)} MB packed, more than ${limits[kind]}`);
    }
    for (const script of ['preinstall', 'install', 'postinstall', 'prepare']) {
      if (script in scripts) faults.push(`${name} has a script "${script}", which users would run`);
    }
    if (
      kind === 'libtorch'
        ? !manifest.version.startsWith(`${libtorchVersion}-`)
        : manifest.version !== version
    ) {
      faults.push(
        `${name} is ${manifest.version}, wanted is ${kind === 'libtorch' ? `${libtorchVersion}-…` : version}`,
      );
    }
  }
  const { main, addon, libtorch } = Object.fromEntries(byKind);
  if (main !== undefined && addon !== undefined) {
    faults.push(...exact(main, 'optionalDependencies', addon));
  }
  if (addon !== undefined && libtorch !== undefined) {
    faults.push(...exact(addon, 'dependencies', libtorch));
  }
  return faults;
}

/** A range would allow packages of different builds to be combined. */
function exact(owner, field, wanted) {
  const range = owner[field]?.[wanted.name];
  return range === wanted.version
    ? []
    : [`${owner.name} has ${wanted.name} ${range} in ${field}, must be exactly ${wanted.version}`];
}

/**
 * The manual steps, in order.
 *
 * @param {string} version
 * @param {string} changelog
 * @param {readonly { file: string, kind: 'main' | 'addon' | 'libtorch' }[]} tarballs
 * @returns {string[]}
 */
function handSteps(version, changelog, tarballs) {
  const order = ['libtorch', 'addon', 'main'];
  const sorted = [...tarballs].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
  return [
    ...(topEntry(changelog).date === null
      ? [`write the date into CHANGELOG.md ("## ${version} - <date>") and commit it`]
      : []),
    `git tag v${version} && git push --tags`,
    'add the packages of the other platforms from the workflow to artifacts/',
    ...sorted.map(
      // libtorch's version has a hyphen, so npm requires an explicit --tag.
      ({ file, kind }) =>
        `npm publish --access public${kind === 'libtorch' ? ' --tag latest' : ''} ${file}`,
    ),
    'put docs-site/ where the documentation is served',
  ];
}

module.exports = { handSteps, kindOf, packageFaults, topEntry, versionFaults };
