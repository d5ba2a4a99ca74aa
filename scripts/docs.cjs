// `npm run docs`: the documentation site in docs-site/, from the guides and the doc comments.
// A warning (a link to nowhere, something undocumented that is referred to) is an error.
'use strict';
const { ensurePackages, main, packageBinary, root, runNode, say } = require('./common.cjs');

main(async () => {
  ensurePackages();
  runNode([packageBinary('typedoc'), ...process.argv.slice(2)]);
  say(`the site is in ${root}/docs-site, its first page index.html`);
});
