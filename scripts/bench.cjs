// `npm run bench`: sets up what is missing, compiles bench/ to build/bench/, then measures.
// Arguments: see bench/README.md, or `npm run bench -- --help`.
'use strict';
const { main, packageBinary, prepare, root, runNode } = require('./common.cjs');

main(async () => {
  await prepare();
  runNode([packageBinary('typescript', 'tsc'), '-p', 'bench/tsconfig.json']);
  runNode(['build/bench/main.js', ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' });
});
