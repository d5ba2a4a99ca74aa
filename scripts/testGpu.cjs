// `npm run test:gpu [-- files or vitest flags]`: what only a machine with a GPU can try. Without one it
// ends with the reason and exit code 1: tests that did not run must not look as if they had passed.
'use strict';
const { spawnSync } = require('node:child_process');
const { StepFailed, main, packageBinary, prepare, root, runNode } = require('./common.cjs');

main(async () => {
  await prepare();
  const reason = reasonForNone();
  if (reason !== '') throw new StepFailed(`these tests need a GPU, and there is none: ${reason}`);
  const config = ['--config', 'tests/gpu/vitest.config.ts'];
  runNode([packageBinary('vitest'), 'run', ...config, ...process.argv.slice(2)], {
    cwd: root,
    stdio: 'inherit',
  });
});

/** In a process of its own: this one shall not hold the GPU. */
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
