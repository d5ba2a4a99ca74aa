// A plain program that uses the package: arithmetic, gradients, off the event loop, a worker.
// `npm run check:nodes` runs it on several versions of Node.js and with several libtorch builds.
import assert from 'node:assert/strict';
import { Worker, isMainThread } from 'node:worker_threads';
import { LayerNorm, makeModel, manualSeed, tensor } from 'torchformer';

manualSeed(1);
const x = tensor([[1, 2, 4]], { requiresGrad: true });
x.mul(x).sum().backward();
assert.deepEqual(x.grad?.toArray(), [[2, 4, 8]]);

const normed = new LayerNorm(3).forward(tensor([[1, 2, 4]])).toArray();
assert.ok(Math.abs(normed[0][0] + 1.0690449) < 1e-5);

await x.mul(3).sum().backwardAsync();
assert.deepEqual(x.grad?.toArray(), [[5, 7, 11]]);

const model = makeModel(11, { N: 1, dModel: 16, dFf: 32, h: 2 }).eval();
const source = tensor([[1n, 2n, 3n]]);
const output = model.generator.forward(model.forward(source, source, null, null));
assert.deepEqual(output.shape, [1, 3, 11]);
assert.ok(
  output
    .exp()
    .sum(-1)
    .toArray()[0]
    .every((sum) => Math.abs(sum - 1) < 1e-5),
);

if (isMainThread) {
  const code = await new Promise((resolve, reject) => {
    new Worker(new URL(import.meta.url)).on('error', reject).on('exit', resolve);
  });
  assert.equal(code, 0);
  const { loadedRuntime } = await import(
    new URL('../../dist/runtime/native/load.js', import.meta.url)
  );
  const { libtorch, cuda } = loadedRuntime();
  console.log(
    `Node.js ${process.versions.node}, libtorch ${libtorch.version} (${libtorch.root}), ` +
      `CUDA ${cuda.open ? 'opened' : 'not opened'}: ${cuda.reason}`,
  );
}
