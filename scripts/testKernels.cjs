// `npm run test:kernels [-- part of a name ...]`: builds the CUDA kernels for the CPU and compares each
// with the CPU kernel of the same op. Needs Python with torch (tests/parity/requirements.txt), but
// neither nvcc nor a GPU.
'use strict';
const { buildNative, ensureLibtorch, main, prepare, root, run } = require('./common.cjs');
const path = require('node:path');

main(async () => {
  await prepare();
  await buildNative(await ensureLibtorch(), { targets: ['torchformer_cuda_emulated'] });
  const python = process.env.PYTHON ?? 'python3';
  const libraries = path.join(root, 'build/Release');
  const parts = process.argv.slice(2);
  run(python, [path.join(root, 'tests/kernels/test_kernels.py'), libraries, ...parts], {
    stdio: 'inherit',
  });
  if (parts.length > 0) return;
  const table = path.join(root, 'tests/ops/check_ops.py');
  run(python, [table, '--libraries', libraries, '--kernels', 'emulated'], { stdio: 'inherit' });
});
