// What the worker of runInWorker.test.ts does: `input.task` names it.
import { getHeapStatistics } from 'node:v8';
import {
  call,
  evaluate,
  makeBatch,
  makeModel,
  manualSeed,
  memory,
  TorchError,
  Trainer,
} from 'torchformer';

const specialIds = { pad: 0, bos: 1, eos: 2 };
const batch = () => makeBatch([{ src: [1, 5, 2], tgt: [1, 6, 2], row: 1 }], specialIds.pad);
const model = () => {
  manualSeed(1);
  return makeModel(20, { N: 1, dModel: 8, dFf: 8, h: 2 });
};

const tasks = {
  async train({ input, signal, listener }) {
    const trainer = new Trainer(model(), { specialIds, reporter: null, listeners: [listener] });
    const one = batch();
    const validation = input.validates ? { validation: [one] } : {};
    const { reason, steps, history } = await trainer.fit([one, one], {
      epochs: input.epochs,
      signal,
      ...validation,
    });
    return { reason, steps, losses: history.steps.map(({ loss }) => loss) };
  },
  async evaluate({ signal, listener }) {
    const { loss, batches } = await evaluate(model(), [batch(), batch()], {
      pad: 0,
      signal,
      onBatch: (_, { batches }) => listener.message(`batch ${batches}`),
    });
    return { loss, batches };
  },
  echo: ({ input }) => input,
  aborted: ({ signal }) => [signal.aborted, signal.reason?.message],
  afterAbort: ({ signal, listener }) => {
    listener.message('ready');
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve(signal.reason.message));
    });
  },
  noSuchOp: () => call('aten::no_such_op'),
  torchError: () => {
    throw new TorchError('ERR_DATA', 'line 3 is broken', { cause: new RangeError('column 2') });
  },
  rangeError: () => {
    throw new RangeError('too large');
  },
  notAnError: () => {
    throw 'a text';
  },
  notData: () => () => 1,
  exits: () => process.exit(3),
  diesLater: () => {
    setTimeout(() => {
      throw new TorchError('ERR_DATA', 'thrown by a timer');
    });
    return new Promise(() => setInterval(() => undefined, 1000));
  },
  fillsTheHeap: () => {
    const kept = [];
    for (;;) kept.push(new Array(1000).fill(getHeapStatistics()));
  },
  leavesATimer: () => {
    setInterval(() => undefined, 10);
    return memory().tensors;
  },
};

export default (context) => tasks[context.input.task](context);
