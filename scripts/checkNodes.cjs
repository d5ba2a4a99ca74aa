// `npm run check:nodes [-- <libtorch folder>…]`: tests the same addon binary on several versions of
// Node.js (from npm's package `node`), with the libtorch that is found and with those in the folders.
// With `--cuda-wheel`, also with the libraries of the CUDA build, downloaded to build/cuda-cache.
'use strict';
const path = require('node:path');
const { importCompiled, main, prepare, root, run, say } = require('./common.cjs');

const versions = ['20', '22', '24'];

main(async () => {
  const { root: found } = await prepare();
  const args = process.argv.slice(2);
  const folders = [
    found,
    ...args.filter((arg) => !arg.startsWith('--')).map((arg) => path.resolve(arg)),
  ];
  if (args.includes('--cuda-wheel')) folders.push(await cpuPartOfCudaWheel());
  for (const version of versions) {
    for (const folder of folders) {
      // `npm exec` puts the wanted Node first in the PATH of the command.
      run(
        'npm',
        ['exec', '--yes', `--package=node@${version}`, '--', 'node', 'tests/process/smoke.mjs'],
        {
          env: { ...process.env, TORCHFORMER_LIBTORCH: folder },
        },
      );
    }
  }
  say(`ok: Node.js ${versions.join(', ')} with ${folders.join(', ')}`);
});

/** Its libtorch_cpu.so differs from the CPU wheel's, but has the same interface. */
async function cpuPartOfCudaWheel() {
  process.env.TORCHFORMER_CACHE = path.join(root, 'build/cuda-cache');
  const { downloadWheels } = await importCompiled('runtime/setup/pip.js');
  const { findPython } = await importCompiled('runtime/native/python.js');
  const { setUpLibtorch } = await importCompiled('runtime/setup/setup.js');
  const { libtorchVersion } = await importCompiled('runtime/package.js');
  const downloads = path.join(root, 'build/cuda-wheel');
  const [wheel] = await downloadWheels(findPython(), [`torch===${libtorchVersion}`], downloads);
  const { root: folder } = await setUpLibtorch({ from: wheel, log: say });
  return folder;
}
