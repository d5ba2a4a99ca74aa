// What a worker thread of workers.test.ts does: `task` and its data come in workerData.
import { parentPort, workerData } from 'node:worker_threads';
const {
  batches,
  Linear,
  makeModel,
  manualSeed,
  memory,
  noGrad,
  ones,
  randn,
  SequenceGenerator,
  tensor,
  tidy,
  Trainer,
  TranslationDataset,
  callAsync,
} = await import(workerData.package);

const model = () => {
  manualSeed(3);
  return makeModel(20, { N: 1, dModel: 16, dFf: 32, h: 2, dropout: 0, attentionDropout: 0 });
};

const tasks = {
  forwards() {
    const transformer = model().eval();
    const ids = tensor([[4, 5, 6]], { dtype: 'int64' });
    const mask = ones([1, 1, 3], { dtype: 'bool' });
    const before = memory().tensors;
    let sum = 0;
    for (let round = 0; round < 100; round++) {
      sum = tidy(() => noGrad(() => transformer.forward(ids, ids, mask, mask).sum().item()));
    }
    parentPort.postMessage({ sum, left: memory().tensors - before });
  },
  async train() {
    const specialIds = { pad: 0, bos: 1, eos: 2 };
    const pairs = Array.from({ length: 64 }, (_, row) => ({
      src: [1, 3 + (row % 17), 4, 2],
      tgt: [1, 3 + (row % 17), 2],
      row,
    }));
    const dataset = new TranslationDataset(pairs, { specialIds, vocabSize: 20 });
    const trainer = new Trainer(model(), { specialIds, reporter: null });
    const source = () => batches(dataset, { batchSize: 8 });
    parentPort.postMessage('training');
    await trainer.fit(source, { epochs: 100_000 });
  },
  products() {
    manualSeed(3);
    const layer = new Linear(300, 500);
    const x = randn([400, 300]).requiresGrad_();
    const sums = [];
    for (let round = 0; round < 20; round++) {
      layer.zeroGrad();
      const output = layer.forward(x);
      output.mul(output).sum().backward();
      const kept = noGrad(() => layer.forward(x.slice(0, 0, 3)));
      sums.push(
        [output, x.grad, layer.weight.grad, layer.bias.grad, kept].map((t) => t.sum().item()),
      );
      x.grad = null;
    }
    parentPort.postMessage(sums);
  },
  async longOp() {
    const big = ones([1500, 1500]);
    const jobs = Array.from({ length: 20 }, () => callAsync('aten::mm', big, big));
    parentPort.postMessage('computing');
    await Promise.all(jobs);
  },
  async decode() {
    const generator = new SequenceGenerator(model().eval(), {
      specialIds: { pad: 0, bos: 1, eos: 2 },
    });
    const sources = Array.from({ length: 40 }, (_, row) => [1, 3 + (row % 17), 4, 2]);
    const options = { suppress: [2], maxLength: 100, beam: workerData.beam ?? 1, scores: true };
    const found = await generator.generate(sources, options);
    parentPort.postMessage(found.map(([target]) => [...target.ids, target.score]));
    while (workerData.forever) await generator.generate(sources, options);
  },
  double() {
    parentPort.once('message', ({ data, shape }) => {
      parentPort.postMessage(tensor(data).reshape(shape).mul(2).data());
    });
    try {
      parentPort.postMessage(ones([1]));
    } catch ({ name, message }) {
      parentPort.postMessage({ name, message });
    }
  },
};

await tasks[workerData.task]();
