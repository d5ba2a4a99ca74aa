// `npm run lint`: runs eslint, type-checks tests and examples (`npm test` only strips their types), and
// checks that everything the package exports has a doc comment.
'use strict';
const { compileTypeScript, ensurePackages, main, packageBinary, runNode } = require('./common.cjs');

main(async () => {
  ensurePackages();
  // Tests and examples import the package by its name, which resolves to dist/.
  compileTypeScript();
  runNode([packageBinary('typescript', 'tsc'), '-p', 'tests/tsconfig.json']);
  runNode(['scripts/checkDocs.mjs']);
  runNode([packageBinary('eslint'), '.']);
});
