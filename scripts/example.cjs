// `npm run demo` and similar scripts: sets up what is missing, then runs an example from examples/.
// Arguments: the example's path without extension, then the example's own arguments.
'use strict';
const { compileExamples, main, prepare, root, runNode } = require('./common.cjs');

main(async () => {
  const [example, ...rest] = process.argv.slice(2);
  await prepare({ all: false });
  compileExamples();
  runNode([`build/examples/${example}.js`, ...rest], { cwd: root, stdio: 'inherit' });
});
