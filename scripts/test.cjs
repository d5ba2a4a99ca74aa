// `npm test [-- files or vitest flags]`: sets up what is missing, then runs the tests.
'use strict';
const { main, packageBinary, prepare, root, runNode } = require('./common.cjs');

main(async () => {
  await prepare();
  const reporters = [
    '--reporter=default',
    '--reporter=json',
    '--outputFile.json=build/test-report.json',
  ];
  runNode([packageBinary('vitest'), 'run', ...reporters, ...process.argv.slice(2)], {
    cwd: root,
    stdio: 'inherit',
  });
});
