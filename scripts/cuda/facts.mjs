// Calls everything in the CUDA API and computes on the CPU; prints the results as one JSON object. Runs
// as a child of `npm run check:cuda`, which sets the environment and checks the results.
import { cuda, makeBatch, makeModel, manualSeed, ones, tensor, Trainer, zeros } from 'torchformer';

/** A result, or the code (the class if there is none) and the message of an error. */
async function outcome(run) {
  try {
    return { value: (await run()) ?? null };
  } catch ({ name, code, message }) {
    return { code: code ?? name, message };
  }
}

async function trainingStep() {
  manualSeed(1);
  const model = makeModel(9, { N: 1, dModel: 8, dFf: 8, h: 2, dropout: 0 });
  const trainer = new Trainer(model, { specialIds: { pad: 0, bos: 1, eos: 2 }, reporter: null });
  const pairs = [{ src: [1, 5, 2], tgt: [1, 6, 2], row: 1 }];
  const { history } = await trainer.fit([makeBatch(pairs, 0)], { epochs: 2 });
  return history.epochs.map(({ trainLoss }) => trainLoss);
}

// First of all: training on the CPU does not use GPUs, and must print nothing about them.
const losses = await trainingStep();
const model = () => makeModel(9, { N: 1, dModel: 8, dFf: 8, h: 2 });

console.log(
  JSON.stringify({
    available: cuda.isAvailable(),
    reason: cuda.unavailableReason(),
    devices: cuda.deviceCount(),
    auto: zeros([1], { device: 'auto' }).device,
    product: tensor([
      [1, 2],
      [3, 4],
    ])
      .matmul(ones([2, 1]))
      .toArray(),
    losses,
    precision: [
      cuda.float32Precision(),
      cuda.setFloat32Precision('high') ?? cuda.float32Precision(),
      cuda.setFloat32Precision('highest') ?? cuda.float32Precision(),
    ],
    pinned: ones([1]).isPinned,
    // Calls that need a GPU.
    calls: {
      name: await outcome(() => cuda.name()),
      capability: await outcome(() => cuda.capability()),
      memory: await outcome(() => cuda.memory()),
      resetPeakMemory: await outcome(() => cuda.resetPeakMemory()),
      emptyCache: await outcome(() => cuda.emptyCache()),
      synchronize: await outcome(() => cuda.synchronize()),
      synchronizeAsync: await outcome(() => cuda.synchronizeAsync()),
      pinMemory: await outcome(() => ones([1]).pinMemory().isPinned),
      tensor: await outcome(() => zeros([1], { device: 'cuda' }).device),
      model: await outcome(() => model().to('cuda').parameters()[0].device),
    },
  }),
);
