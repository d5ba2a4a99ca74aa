import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { call, makeModel, SequenceGenerator } from 'torchformer';

const live = () => call('torchformer_decode::live') as number[];

/** Decodes in a worker that stays alive, and ends it. */
async function decodeInWorker(end: (worker: Worker) => Promise<unknown>): Promise<number[]> {
  const worker = new Worker(
    `const { parentPort } = require('node:worker_threads');
     const { makeModel, SequenceGenerator } = require(${JSON.stringify(process.cwd() + '/dist/index.cjs')});
     const model = makeModel(30, { N: 1, dModel: 16, dFf: 16, h: 2 }).eval();
     const generator = new SequenceGenerator(model, { specialIds: { pad: 0, bos: 1, eos: 2 } });
     setInterval(() => {}, 1000);
     generator.generate([[1, 5, 2]]).then(() => parentPort.postMessage('done'));`,
    { eval: true },
  );
  await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
  const during = live();
  await end(worker);
  return during;
}

test('what a worker has prepared ends with the worker, however that ends', async () => {
  const model = makeModel(30, { N: 1, dModel: 16, dFf: 16, h: 2 }).eval();
  const generator = new SequenceGenerator(model, { specialIds: { pad: 0, bos: 1, eos: 2 } });
  await generator.generate([[1, 5, 2]]);
  const before = live();
  expect(before).toEqual([1, 1]);
  const during = await decodeInWorker((worker) => worker.terminate());
  expect(during).toEqual([2, 2]);
  expect(live()).toEqual(before);
  // The main thread's own still work.
  expect(await generator.generate([[1, 5, 2]])).toHaveLength(1);
  model.dispose();
});
