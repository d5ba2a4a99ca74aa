// `npm run lint`: eslint, and the types of tests and examples, which `npm test` only strips.
'use strict';
const { compileTypeScript, ensurePackages, main, packageBinary, runNode } = require('./common.cjs');

main(async () => {
  ensurePackages();
  // Tests and examples import the package by its name, which leads to dist/.
  compileTypeScript();
  runNode([packageBinary('typescript', 'tsc'), '-p', 'tests/tsconfig.json']);
  runNode([packageBinary('eslint'), '.']);
});
