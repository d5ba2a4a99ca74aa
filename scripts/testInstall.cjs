// `npm run test:install [-- vitest flags]`: packs the packages, publishes them to a registry on this
// machine, and installs them from there the ways that users do. Takes some minutes; the first time it
// fetches the tools (a registry, package managers, versions of Node.js: 800 MB) to build/install-tools.
'use strict';
const { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } = require('node:fs');
const path = require('node:path');
const { main, packageBinary, prepare, root, runNode, say } = require('./common.cjs');
const { npm } = require('./pack/npm.cjs');

const source = path.join(root, 'tests/install/tools');
const target = path.join(root, 'build/install-tools');

/** Installs the tools anew when their list changed. */
function ensureTools() {
  const wanted = readFileSync(path.join(source, 'package-lock.json'), 'utf8');
  // Written last, so that an installation that was broken off is begun anew.
  const record = path.join(target, 'installed-lock.json');
  if (existsSync(record) && readFileSync(record, 'utf8') === wanted) return;
  say('fetching the tools of the installation tests');
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
