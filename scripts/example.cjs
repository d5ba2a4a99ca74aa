// `npm run demo` and its like: sets up what is missing, then runs an example of examples/.
// Arguments: its path without ending, then what the example takes.
'use strict';
const { compileExamples, main, prepare, root, runNode } = require('./common.cjs');

main(async () => {
  const [example, ...rest] = process.argv.slice(2);
  await prepare();
  compileExamples();
  runNode([`build/examples/${example}.js`, ...rest], { cwd: root, stdio: 'inherit' });
});
