// `npm run lint`: eslint, the types of tests and examples, which `npm test` only strips, and a doc
// comment on everything that the package exports.
'use strict';
const { compileTypeScript, ensurePackages, main, packageBinary, runNode } = require('./common.cjs');

main(async () => {
  ensurePackages();
  // Tests and examples import the package by its name, which leads to dist/.
  compileTypeScript();
  runNode([packageBinary('typescript', 'tsc'), '-p', 'tests/tsconfig.json']);
  runNode(['scripts/checkDocs.mjs']);
  runNode([packageBinary('eslint'), '.']);
});
