// `npm run test:install [-- vitest flags]`: packs the packages, publishes them to a local registry, and
// installs them from there as users do. Takes several minutes; the first run downloads the tools
// (a registry, package managers, versions of Node.js: 800 MB) to build/install-tools.
'use strict';
const { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } = require('node:fs');
const path = require('node:path');
const { main, packageBinary, prepare, root, runNode, say } = require('./common.cjs');
const { npm } = require('./pack/npm.cjs');

const source = path.join(root, 'tests/install/tools');
const target = path.join(root, 'build/install-tools');

/** Reinstalls the tools if their list changed. */
function ensureTools() {
  const wanted = readFileSync(path.join(source, 'package-lock.json'), 'utf8');
  // Written last, so that an interrupted installation starts again.
  const record = path.join(target, 'installed-lock.json');
  if (existsSync(record) && readFileSync(record, 'utf8') === wanted) return;
  say('downloading the tools for the installation tests');
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  for (const name of ['package.json', 'package-lock.json']) {
    cpSync(path.join(source, name), path.join(target, name));
  }
  npm(['ci', '--ignore-scripts'], { cwd: target });
  writeFileSync(record, wanted);
}

main(async () => {
  await prepare();
  ensureTools();
  runNode(['scripts/packAll.cjs'], { cwd: root, stdio: 'inherit' });
  const args = ['run', '--config', 'tests/install/vitest.config.ts', ...process.argv.slice(2)];
  runNode([packageBinary('vitest'), ...args], { cwd: root, stdio: 'inherit' });
});
