// `npm run test:kills [-- kills [seed]]`: kills a training run 50 times, at random moments and within
// saves, resumes it each time, and compares what it leaves with the uninterrupted run, to the bit.
// The default seed is 1. `npm test` does the same with 4 kills.
'use strict';
const { main, packageBinary, prepare, root, runNode } = require('./common.cjs');

main(async () => {
  await prepare({ all: false });
  const [kills = '50', seed = '1'] = process.argv.slice(2);
  runNode([packageBinary('vitest'), 'run', 'tests/process/killedRuns.test.ts'], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, TORCHFORMER_KILLS: kills, TORCHFORMER_KILLS_SEED: seed },
  });
});
