// `npm run test:browser [-- files or vitest flags]`: looks at report.html in Chromium, the one that
// `TORCHFORMER_CHROMIUM` names or that is in the PATH. Without one it says so and exits with code 1.
'use strict';
const {
  StepFailed,
  findProgram,
  main,
  packageBinary,
  prepare,
  root,
  runNode,
} = require('./common.cjs');

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

main(async () => {
  await prepare({ all: false });
  const browser =
    process.env.TORCHFORMER_CHROMIUM || names.map(findProgram).find((path) => path !== null);
  if (!browser) {
    throw new StepFailed(
      `these tests need Chromium, and none is in the PATH (${names.join(', ')}); install it, or set ` +
        'TORCHFORMER_CHROMIUM to its path',
    );
  }
  const config = ['--config', 'tests/browser/vitest.config.ts'];
  runNode([packageBinary('vitest'), 'run', ...config, ...process.argv.slice(2)], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, TORCHFORMER_CHROMIUM: browser },
  });
});
