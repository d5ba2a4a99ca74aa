// `npm run format`: runs prettier and clang-format over the tree; with --check they only report.
'use strict';
const { readdirSync } = require('node:fs');
const path = require('node:path');
const { main, packageBinary, root, runNode } = require('./common.cjs');

function nativeSources() {
  return readdirSync(path.join(root, 'native'), { recursive: true })
    .filter((name) => /\.(c|cc|cu|h|cuh)$/.test(name))
    .map((name) => path.join('native', name))
    .sort();
}

main(async () => {
  const check = process.argv.includes('--check');
  runNode([packageBinary('prettier'), check ? '--check' : '--write', '--log-level=warn', '.']);
  const flags = check ? ['--dry-run', '--Werror'] : ['-i'];
  runNode([packageBinary('clang-format-node', 'clang-format'), ...flags, ...nativeSources()]);
});
