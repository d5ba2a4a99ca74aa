// The package.json of each published package, derived from the repository's.
'use strict';

/**
 * The packing number of libtorch: raise it when the package changes and libtorch does not. The
 * package's version is libtorch's, a hyphen, and this number (`2.13.0-1`), like the revisions of
 * Linux distributions. npm treats such a version as a prerelease: no range selects it, and publishing
 * needs a `--tag`. Both are intended, as only an exact version of libtorch is accepted.
 */
const libtorchPacking = 1;

function libtorchPackageVersion(libtorchVersion) {
  return `${libtorchVersion}-${libtorchPacking}`;
}

/** Fields of package.json that a checkout needs and an installed package does not. */
const checkoutOnly = ['scripts', 'devDependencies', 'binary', 'config', 'overrides'];

/**
 * @typedef {Record<string, unknown>} Manifest
 * @typedef {import('../../lib/runtime/native/platform.js').Platform} Platform
 */

/**
 * The main package: JavaScript and types.
 *
 * The packages with binaries are optional dependencies: npm installs those for this platform and skips
 * the others. They are added here and not in the repository's package.json, because a checkout
 * builds its own binaries, and `npm ci` of a version that is not published yet would request
 * packages that do not exist from the registry.
 *
 * @param {Manifest} manifest
 * @param {readonly Pick<Platform, 'addonPackage'>[]} platforms
 * @returns {Manifest}
 */
function mainManifest(manifest, platforms) {
  const result = Object.fromEntries(
    Object.entries(manifest).filter(([key]) => !checkoutOnly.includes(key)),
  );
  // npm builds packages with a binding.gyp unless this is false; the file is not published either.
  result.gypfile = false;
  result.optionalDependencies = {
    ...manifest.optionalDependencies,
    ...Object.fromEntries(platforms.map(({ addonPackage }) => [addonPackage, manifest.version])),
  };
  return result;
}

/**
 * The addon and its bootstrap for one platform.
 *
 * @param {Manifest} manifest
 * @param {Platform} platform
 * @param {string} libtorchVersion
 * @returns {Manifest}
 */
function addonManifest(manifest, platform, libtorchVersion) {
  return {
    name: platform.addonPackage,
    version: manifest.version,
    description: `The native addon of torchformer for ${platform.title}`,
    ...inherited(manifest),
    license: manifest.license,
    ...restrictions(platform),
    engines: manifest.engines,
    files: ['*.node', '*.so', '*.dylib', '*.dll'],
    dependencies: { [platform.libtorchPackage]: libtorchPackageVersion(libtorchVersion) },
  };
}

/**
 * libtorch's libraries for the CPU of one platform.
 *
 * @param {Manifest} manifest
 * @param {Platform} platform
 * @param {string} libtorchVersion
 * @returns {Manifest}
 */
function libtorchManifest(manifest, platform, libtorchVersion) {
  return {
    name: platform.libtorchPackage,
    version: libtorchPackageVersion(libtorchVersion),
    description: `The CPU libraries of libtorch ${libtorchVersion} for ${platform.title}`,
    ...inherited(manifest),
    license: 'SEE LICENSE IN LICENSE.md',
    ...restrictions(platform),
    files: ['lib', 'licenses', 'build-version', 'LICENSE.md'],
  };
}

function inherited(manifest) {
  const keys = ['repository', 'homepage', 'bugs', 'author'];
  return Object.fromEntries(
    keys.filter((key) => key in manifest).map((key) => [key, manifest[key]]),
  );
}

function restrictions({ os, cpu, libc }) {
  return {
    os: [os],
    cpu: [cpu],
    ...(libc === null ? {} : { libc: [libc] }),
    // The dynamic linker cannot open a library inside an archive (yarn's Plug'n'Play).
    preferUnplugged: true,
  };
}

module.exports = { addonManifest, libtorchManifest, libtorchPackageVersion, mainManifest };
