// `npm run lint`: runs eslint, type-checks tests and examples (`npm test` only strips their types), and
// checks that everything the package exports has a doc comment and that imports follow the rules in
// .dependency-cruiser.mjs.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const {
  compileTypeScript,
  ensurePackages,
  main,
  packageBinary,
  root,
  runNode,
} = require('./common.cjs');

/** What lib/ is compiled to; dist/ may also have files of an older lib/. */
function compiledFiles() {
  const files = fs.readdirSync(path.join(root, 'lib'), { recursive: true });
  return files.filter((file) => file.endsWith('.ts')).map((file) => `dist/${file.slice(0, -3)}.js`);
}

main(async () => {
  ensurePackages();
  // Tests and examples import the package by its name, which resolves to dist/.
  compileTypeScript();
  runNode([packageBinary('typescript', 'tsc'), '-p', 'tests/tsconfig.json']);
  runNode(['scripts/checkDocs.mjs']);
  const sources = ['lib', 'bench', 'examples', 'scripts', 'tests'];
  const files = [...sources, ...compiledFiles()];
  runNode([
    packageBinary('dependency-cruiser', 'depcruise'),
    '--output-type',
    'err-long',
    ...files,
  ]);
  runNode([packageBinary('eslint'), '.']);
});
