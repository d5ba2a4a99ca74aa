// A child of emulatedKernels.test.ts: trains small models of several kinds and prints what came of it.
// With an argument, the library of that path is opened first, whose CUDA kernels, run thread by thread
// on the CPU, then take the place of the CPU's own.
import {
  Adam,
  autocast,
  makeBatch,
  makeModel,
  manualSeed,
  noGrad,
  ops,
  randn,
  setNumThreads,
  tokenLossSum,
} from 'torchformer';

const [library] = process.argv.slice(2);
setNumThreads(1);
manualSeed(1);
if (library !== undefined) {
  try {
    process.dlopen({ exports: {} }, library);
  } catch (error) {
    // It is no addon, but it is open, and its kernels are registered.
    if (!/did not self-register/.test(error.message)) throw error;
  }
}

const pairs = [
  { src: [2, 5, 6, 7, 3], tgt: [2, 7, 8, 9, 3], row: 1 },
  { src: [2, 5, 3], tgt: [2, 7, 3], row: 2 },
];

/**
 * Losses of three steps; in float64 also the size of all weights after them. In float32 Adam turns the
 * rounding noise of gradients that are 0 into whole steps.
 */
function train(options, results) {
  const { dModel = 12, dtype = 'float32', activation = 'relu', norm, sparse = false } = options;
  manualSeed(3);
  const sizes = { N: 1, dModel, dFf: 20, h: 2, dropout: 0.2, attentionDropout: 0.1 };
  const model = makeModel(37, { ...sizes, activation, ...(norm === undefined ? {} : { norm }) });
  model.to({ dtype: dtype === 'float64' ? 'float64' : 'float32' });
  if (sparse)
    for (const one of model.modules()) if ('sparseGradient' in one) one.sparseGradient = true;
  const optimizer = new Adam(model.parameters());
  const batch = makeBatch(pairs, 0);
  const losses = [];
  for (let step = 0; step < 3; step++) {
    optimizer.zeroGrad();
    const compute = () => tokenLossSum(model, batch, 0);
    const loss = results === undefined ? compute() : autocast('bfloat16', compute, { results });
    loss.backward();
    optimizer.step();
    losses.push(loss.item());
  }
  if (dtype !== 'float64') return losses;
  const size = model
    .parameters()
    .reduce((sum, one) => sum + one.detach().to({ dtype: 'float64' }).abs().sum().item(), 0);
  return [...losses, size];
}

/** Sum, norm and gradients of the residual sum with the norm behind it. */
function addNorm(size) {
  manualSeed(5);
  const inputs = [randn([5, size]), randn([5, size]), randn([size]), randn([size])];
  for (const one of inputs) one.requiresGrad_();
  const outputs = ops.torchformer.add_norm(...inputs, 0.3, 1e-3, { sample_std: true });
  outputs[0].mul(2).add(outputs[1]).pow(2).sum().backward();
  return noGrad(() =>
    [...outputs, ...inputs.map(({ grad }) => grad)].map((one) => one.abs().sum().item()),
  );
}

console.log(
  JSON.stringify({
    'float32, packed rows': train({}),
    float64: train({ dtype: 'float64' }),
    'by the sample, eps outside': train({ norm: { std: 'sample', epsPlace: 'outside' } }),
    'root mean square, gated': train({ norm: { kind: 'rms' }, activation: 'swiglu' }),
    'gelu, sparse gradients': train({ activation: 'gelu', sparse: true }),
    'odd width': train({ dModel: 10 }),
    'bfloat16 results': train({}, 'bfloat16'),
    'add_norm of 8': addNorm(8),
    'add_norm of 7': addNorm(7),
    'add_norm of 1100': addNorm(1100),
  }),
);
