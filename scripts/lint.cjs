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

/**
 * What lib/ is compiled to; dist/ may also have files of an older lib/. The page of `report.html` is compiled
 * to one script.
 */
function compiledFiles() {
  const files = fs.readdirSync(path.join(root, 'lib'), { recursive: true });
  const isCompiled = (file) => file.endsWith('.ts') && !file.startsWith('train/report/page/');
  return files.filter(isCompiled).map((file) => `dist/${file.slice(0, -3)}.js`);
}

main(async () => {
  ensurePackages();
  // Tests and examples import the package by its name, which resolves to dist/.
  compileTypeScript();
  for (const project of ['tests/tsconfig.json', 'tests/browser/tsconfig.json']) {
    runNode([packageBinary('typescript', 'tsc'), '-p', project]);
  }
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
