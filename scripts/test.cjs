// `npm test [-- files or vitest flags]`: sets up what is missing, then runs the tests.
'use strict';
const { buildNative, main, packageBinary, prepare, root, runNode } = require('./common.cjs');

main(async () => {
  const libtorch = await prepare();
  // The CUDA kernels, compiled for the CPU: tests/process/emulatedKernels.test.ts uses them.
  await buildNative(libtorch, { targets: ['torchformer_cuda_emulated'] });
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
