// `npm run demo`: sets up what is missing, then trains a small translator and tries it.
'use strict';
const { compileExamples, main, prepare, root, runNode } = require('./common.cjs');

main(async () => {
  await prepare();
  compileExamples();
  runNode(['build/examples/demo/demo.js', ...process.argv.slice(2)], {
    cwd: root,
    stdio: 'inherit',
  });
});
