// `npm run test:fuzz [-- cases [seed]]`: 10,000 random calls of the typed API and of the native ops.
// The default seed is 1. Each failing case is printed with the command that repeats only that case.
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
