/** Ten steps of the Trainer against ten steps of PyTorch, every dropout 0. */
import { beforeAll, describe, expect, it } from 'vitest';
import { Adam, makeBatch, SGD, Trainer } from 'torchformer';
import type { Batch, Transformer } from 'torchformer';
import { buildModel } from './build.js';
import { difference, expectWithin, get, index, readFixture, under } from './fixtures.js';
import type { Tensors, TrainingRun } from './fixtures.js';

const { options, pad, runs, trainBatches, validateBatches } = index.training;
const optimizers = { Adam, SGD };
const lossTolerance = { float32: 1e-4, float64: 1e-10 };
/** Adam divides the rounding noise of a zero gradient (a key bias) by its eps of 1e-8. */
const weightTolerance = {
  Adam: { float32: NaN, float64: 1e-9 },
  SGD: { float32: 1e-6, float64: 1e-12 },
};

let fixtures: Tensors;
beforeAll(async () => {
  fixtures = await readFixture('training');
});

describe('ten steps of the Trainer equal ten steps of PyTorch', () => {
  const named = runs.map((run) => [`${run.optimizer}, ${run.dtype}`, run] as const);
  it.each(named)('%s: losses, validation loss, and the weights after', async (_, run) => {
    const { model, losses, validationLoss } = await train(run);
    expect(losses).toHaveLength(run.losses.length);
    const worst = Math.max(
      ...run.losses.map((loss, step) => Math.abs((losses[step] as number) - loss)),
    );
    expect(worst).toBeLessThanOrEqual(lossTolerance[run.dtype]);
    const validationOff = Math.abs(validationLoss - run.validationLoss);
    expect(validationOff).toBeLessThanOrEqual(lossTolerance[run.dtype]);

    let weightsOff = 0;
    if (run.weights !== null) {
      for (const [name, expected] of under(fixtures, run.weights)) {
        const off = difference(get(model.stateDict(), name), expected);
        weightsOff = Math.max(weightsOff, off);
        expectWithin(name, off, weightTolerance[run.optimizer][run.dtype]);
      }
    }
    if (process.env.PARITY_FIGURES === '1') {
      console.log(
        `${run.optimizer} ${run.dtype}: losses ${worst}, validation ${validationOff}, weights ${weightsOff}`,
      );
    }
  });
});

async function train(
  run: TrainingRun,
): Promise<{ model: Transformer; losses: number[]; validationLoss: number }> {
  const model = buildModel((name) => options[name] as number, 0);
  model.loadStateDict(under(fixtures, 'initial'));
  model.to({ dtype: run.dtype });
  const trainer = new Trainer(model, {
    specialIds: { pad, bos: 1, eos: 2 },
    optimizer: new optimizers[run.optimizer](model.parameters(), { lr: run.lr }),
    learningRate: run.lr,
    reporter: null,
  });
  const { history } = await trainer.fit(batches('train', trainBatches), {
    epochs: 1,
    validation: batches('validate', validateBatches),
  });
  return {
    model,
    losses: history.steps.map(({ loss }) => loss),
    validationLoss: history.epochs[0]?.validationLoss as number,
  };
}

function batches(kind: 'train' | 'validate', count: number): Batch[] {
  return Array.from({ length: count }, (_, number) => {
    const [src, tgt] = [sentences(`${kind}${number}/src`), sentences(`${kind}${number}/target`)];
    const pairs = src.map((ids, row) => ({ src: ids, tgt: tgt[row] as number[], row }));
    return makeBatch(pairs, pad);
  });
}

/** The rows of an id tensor without their padding. */
function sentences(key: string): number[][] {
  const rows = get(fixtures, key).toArray() as (number | bigint)[][];
  return rows.map((row) => row.map(Number).filter((id) => id !== pad));
}
