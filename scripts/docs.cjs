// `npm run docs`: builds the documentation site in docs-site/ from the guides and the doc comments.
// A warning (a dead link, a reference to something undocumented) is an error.
'use strict';
const { ensurePackages, main, packageBinary, root, runNode, say } = require('./common.cjs');

main(async () => {
  ensurePackages();
  runNode([packageBinary('typedoc'), ...process.argv.slice(2)]);
  say(`the site is in ${root}/docs-site; open index.html`);
});
