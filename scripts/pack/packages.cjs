// Packs the three packages of this platform from the build output into tarballs.
'use strict';
const { mkdirSync, readFileSync } = require('node:fs');
const path = require('node:path');
const { importCompiled, root, StepFailed } = require('../common.cjs');
const { stageAddon, stageLibtorch, stageMain } = require('./files.cjs');
const { addonManifest, libtorchManifest, mainManifest } = require('./manifests.cjs');
const { pack } = require('./npm.cjs');

/** A CPU build of libtorch with its licenses, for the third package. */
async function cpuLibtorch() {
  const { cacheEntry } = await importCompiled('runtime/package.js');
  const { inspectLibtorch } = await importCompiled('runtime/native/libtorchFolder.js');
  const { setUpLibtorch } = await importCompiled('runtime/setup/setup.js');
  const { findLibtorch } = await importCompiled('runtime/native/findLibtorch.js');
  const { say } = require('../common.cjs');
  const inUse = findLibtorch();
  if (!inUse.cuda && inUse.version?.includes('+cpu')) return inUse;
  await setUpLibtorch({ variant: 'cpu', log: say });
  const folder = inspectLibtorch(cacheEntry('cpu'));
  if (typeof folder === 'string') throw new StepFailed(`${cacheEntry('cpu')} ${folder}`);
  return folder;
}

/**
 * Packs the named packages into `output`.
 *
 * @param {{ output: string, only?: readonly ('main' | 'addon' | 'libtorch')[] }} options
 * @returns {Promise<{ name: string, version: string, tarball: string, entryCount: number,
 *   unpackedSize: number, size: number, shasum: string }[]>}
 */
async function packPackages({ output, only = ['main', 'addon', 'libtorch'] }) {
  const { ownPlatform, platforms } = await importCompiled('runtime/native/platform.js');
  const { libtorchVersion } = await importCompiled('runtime/package.js');
  const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  const stage = path.join(output, 'folders');
  const stages = {
    main: (folder) => {
      const released = platforms.filter((one) => one.released);
      const { files } = pack(root, ['--dry-run']);
      const paths = files.map((file) => file.path);
      stageMain(folder, paths, mainManifest(manifest, released));
    },
    addon: (folder) => {
      const build = path.join(root, 'build/Release');
      stageAddon(folder, build, addonManifest(manifest, ownPlatform, libtorchVersion));
    },
    libtorch: async (folder) => {
      const wanted = libtorchManifest(manifest, ownPlatform, libtorchVersion);
      stageLibtorch(folder, await cpuLibtorch(), wanted);
    },
  };
  mkdirSync(stage, { recursive: true });
  const packed = [];
  for (const kind of only) {
    const folder = path.join(stage, kind);
    await stages[kind](folder);
    const { name, version, filename, entryCount, unpackedSize, size, shasum } = pack(folder, [
      '--pack-destination',
      output,
    ]);
    const tarball = path.join(output, filename);
    packed.push({ name, version, tarball, entryCount, unpackedSize, size, shasum });
  }
  return packed;
}

module.exports = { packPackages };
