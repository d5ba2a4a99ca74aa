// `npm run test:gpu [-- files or vitest flags]`: runs the tests that need a GPU. Without one it prints the
// reason and exits with code 1, so that tests that did not run do not appear to have passed.
'use strict';
const { spawnSync } = require('node:child_process');
const { StepFailed, main, packageBinary, prepare, root, runNode } = require('./common.cjs');

main(async () => {
  await prepare();
  const reason = reasonForNone();
  if (reason !== '')
    throw new StepFailed(`these tests need a GPU, and none can be used: ${reason}`);
  const config = ['--config', 'tests/gpu/vitest.config.ts'];
  runNode([packageBinary('vitest'), 'run', ...config, ...process.argv.slice(2)], {
    cwd: root,
    stdio: 'inherit',
  });
});

/** Runs in a separate process, so that this one does not hold the GPU. */
function reasonForNone() {
  const script = `
    const { cuda } = await import('./dist/index.js');
    process.stdout.write(cuda.unavailableReason() ?? '');
  `;
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: root,
    encoding: 'utf8',
  });
  if (child.status !== 0) throw new StepFailed(child.stderr.trim());
  return child.stdout;
}
