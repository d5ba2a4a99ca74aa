// `npm run test:kernels [-- part of a name ...]`: builds the CUDA kernels for the CPU and compares each
// with the CPU kernel of the same op. Needs Python with torch (tests/parity/requirements.txt), but
// neither nvcc nor a GPU.
'use strict';
const { buildNative, ensureLibtorch, main, prepare, root, run } = require('./common.cjs');
const path = require('node:path');

main(async () => {
  await prepare();
  buildNative(await ensureLibtorch(), { targets: ['torchformer_cuda_emulated'] });
  const python = process.env.PYTHON ?? 'python3';
  const file = path.join(root, 'tests/kernels/test_kernels.py');
  run(python, [file, path.join(root, 'build/Release'), ...process.argv.slice(2)], {
    stdio: 'inherit',
  });
});
