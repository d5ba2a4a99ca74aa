// `npm run test:fuzz [-- cases [seed]]`: 10,000 random calls of the typed API and of the native ops.
// Seed 1 unless another is given; each failing case is told with the command that repeats it alone.
'use strict';
const { main, packageBinary, prepare, root, runNode } = require('./common.cjs');

main(async () => {
  await prepare();
  const [cases = '10000', seed = '1'] = process.argv.slice(2);
  runNode([packageBinary('vitest'), 'run', 'tests/fuzz'], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, TORCHFORMER_FUZZ_CASES: cases, TORCHFORMER_FUZZ_SEED: seed },
  });
});
