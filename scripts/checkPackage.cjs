// `npm run check:package [-- <tarball>…]`: runs publint and arethetypeswrong on the packages as they
// would be published. Default: the tarballs of `npm run pack:all` in artifacts/, or a fresh
// `npm pack` of this package if there are none. No rule is disabled.
'use strict';
const { existsSync, mkdtempSync, readdirSync, rmSync } = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const {
  compileTypeScript,
  ensurePackages,
  main,
  packageBinary,
  root,
  run,
  runNode,
  say,
} = require('./common.cjs');

const artifacts = path.join(root, 'artifacts');

function packedArtifacts() {
  if (!existsSync(artifacts)) return [];
  return readdirSync(artifacts)
    .filter((name) => name.endsWith('.tgz'))
    .map((name) => path.join(artifacts, name));
}

/** @returns the tarball of this package, in `folder` */
function packHere(folder) {
  compileTypeScript();
  run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder]);
  return readdirSync(folder).map((name) => path.join(folder, name));
}

function check(tarball) {
  const name = path.basename(tarball);
  runNode([packageBinary('publint'), 'run', tarball, '--strict']);
  // The packages with binaries have no types and no entry point.
  if (/^torchformer-\d/.test(name)) {
    runNode([packageBinary('@arethetypeswrong/cli', 'attw'), tarball, '--no-emoji', '--no-color']);
  }
  say(`ok: ${name}`);
}

main(async () => {
  ensurePackages();
  const given = process.argv.slice(2).map((file) => path.resolve(file));
  const temporary = mkdtempSync(path.join(os.tmpdir(), 'torchformer-pack-'));
  try {
    let tarballs = given.length > 0 ? given : packedArtifacts();
    if (tarballs.length === 0) tarballs = packHere(temporary);
    for (const tarball of tarballs) check(tarball);
  } finally {
    rmSync(temporary, { recursive: true });
  }
});
