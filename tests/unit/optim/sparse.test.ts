import { beforeEach, describe, expect, it } from 'vitest';
import {
  Adam,
  AdamW,
  call,
  callTensor,
  clipGradNorm,
  Embedding,
  makeBatch,
  makeModel,
  manualSeed,
  memory,
  noGrad,
  ones,
  SGD,
  tensor,
  Trainer,
  type Tensor,
  zeros,
} from 'torchformer';
import { largestDifference } from '../../support/numbers.js';

beforeEach(() => manualSeed(1));

function ids(...values: number[]): Tensor {
  return tensor(values, { dtype: 'int64' });
}

/** Arguments of the native op for rows of a [3, 2] table, with a gradient that nobody has checked. */
function rowUpdate(rows: number[]): [Tensor[], object] {
  const gradient = callTensor(
    'aten::_sparse_coo_tensor_unsafe',
    tensor([rows], { dtype: 'int64' }),
    ones([rows.length, 2]),
    [3, 2],
  );
  const tensors = [ones([3, 2]), gradient, zeros([3, 2]), zeros([3, 2])];
  const settings = { lr: 0.5, beta1: 0, beta2: 0, eps: 0 };
  return [[...tensors, zeros([3], { dtype: 'bool' }), tensor(1)], settings];
}

/** Two equal tables, the first with sparse gradients. */
function tables(count = 12, dimension = 3, dtype: 'float32' | 'float64' = 'float64') {
  const sparse = new Embedding(count, dimension).to({ dtype });
  const dense = sparse.clone();
  sparse.sparseGradient = true;
  return [sparse, dense] as const;
}

/** One step of both for the sum of squares of some rows. */
function step(table: Embedding, optimizer: Adam | SGD, rows: Tensor): void {
  optimizer.zeroGrad();
  const found = table.forward(rows);
  found.mul(found).sum().backward();
  optimizer.step();
}

describe('the gradient of an embedding with sparseGradient', () => {
  it('has the rows that were looked up, and reads as the dense one', () => {
    const [sparse, dense] = tables(5, 1);
    for (const table of [sparse, dense])
      table
        .forward(ids(3, 1, 3))
        .sum()
        .backward();
    expect(sparse.weight.grad?.isSparse).toBe(true);
    expect(dense.weight.grad?.isSparse).toBe(false);
    expect(sparse.weight.grad?.toArray()).toEqual([[0], [1], [0], [2], [0]]);
    expect(sparse.weight.grad?.toArray()).toEqual(dense.weight.grad?.toArray());
  });

  it('adds up over backward passes', () => {
    const [sparse] = tables(4, 1);
    sparse.forward(ids(1)).sum().backward();
    sparse.forward(ids(1, 2)).sum().backward();
    expect(sparse.weight.grad?.toArray()).toEqual([[0], [2], [1], [0]]);
  });

  it('is clipped to the norm of the dense one', () => {
    const [sparse, dense] = tables();
    const norms = [sparse, dense].map((table) => {
      const found = table.forward(ids(2, 5, 2));
      found.mul(found).sum().backward();
      return clipGradNorm([table.weight], 0.5);
    });
    expect(norms[0]).toBeCloseTo(norms[1] as number, 12);
    expect(
      largestDifference(
        callTensor('aten::_to_dense', sparse.weight.grad as Tensor),
        dense.weight.grad as Tensor,
      ),
    ).toBeLessThan(1e-12);
  });
});

describe('Adam with sparse gradients', () => {
  it('leaves rows alone that no batch has had, and moves those that one had', () => {
    const [table] = tables(3, 2);
    const before = table.weight.detach().clone();
    const optimizer = new Adam([table.weight], { lr: 0.1 });
    step(table, optimizer, ids(1));
    step(table, optimizer, ids(0));
    const moved = table.weight.detach().sub(before).abs().sum(1).toArray() as number[];
    expect(moved[2]).toBe(0);
    expect(moved[0]).toBeGreaterThan(0.1);
    // Two rates of 0.1 in each of two columns: the second by momentum alone.
    expect(moved[1]).toBeGreaterThan(0.25);
  });

  it.each(['float64', 'float32'] as const)('equals dense Adam after 50 steps in %s', (dtype) => {
    const [sparse, dense] = tables(40, 5, dtype);
    const optimizers = [sparse, dense].map((table) => new Adam([table.weight], { lr: 0.05 }));
    for (let i = 0; i < 50; i++) {
      // Some rows often, some once, some never.
      const rows = ids(i % 3, (i * 7) % 30, 31, i % 3);
      [sparse, dense].forEach((table, index) => {
        step(table, optimizers[index] as Adam, rows);
      });
    }
    const largest = dense.weight.detach().abs().max().item();
    const allowed = dtype === 'float64' ? 1e-12 : 1e-5;
    expect(largestDifference(sparse.weight, dense.weight) / largest).toBeLessThan(allowed);
  });

  it('may change between dense and sparse, and go on from a loaded state', () => {
    const [sparse, dense] = tables();
    let first = new Adam([sparse.weight], { lr: 0.05 });
    const second = new Adam([dense.weight], { lr: 0.05 });
    const both = (isSparse: boolean, rows: Tensor) => {
      sparse.sparseGradient = isSparse;
      step(sparse, first, rows);
      step(dense, second, rows);
    };
    both(true, ids(1, 2));
    both(false, ids(3));
    both(true, ids(4));
    const loaded = new Adam([sparse.weight], { lr: 0.05 });
    loaded.loadStateDict(first.stateDict());
    first = loaded;
    both(true, ids(1));
    expect(largestDifference(sparse.weight, dense.weight)).toBeLessThan(1e-14);
  });

  it.each([
    ['Adam with weight decay', (p: Tensor) => new Adam([p], { lr: 0.05, weightDecay: 0.1 })],
    ['AdamW', (p: Tensor) => new AdamW([p], { lr: 0.05 })],
    ['SGD', (p: Tensor) => new SGD([p], { lr: 0.05 })],
  ])('of %s is the dense one too', (_name, make) => {
    const [sparse, dense] = tables();
    for (const table of [sparse, dense]) {
      const optimizer = make(table.weight);
      step(table, optimizer, ids(1, 5));
      step(table, optimizer, ids(2));
    }
    expect(largestDifference(sparse.weight, dense.weight)).toBeLessThan(1e-14);
  });

  it('frees step, both moments and the flags of its rows with dispose', () => {
    const [table] = tables();
    const optimizer = new Adam([table.weight]);
    step(table, optimizer, ids(1));
    const before = memory().tensors;
    optimizer.dispose();
    expect(memory().tensors).toBe(before - 4);
  });

  it('checks everything before it writes', () => {
    const [table] = tables(4, 2);
    const gradient = noGrad(() => callTensor('aten::to_sparse.sparse_dim', table.weight, 1));
    const state = () =>
      tensor(
        [
          [0, 0],
          [0, 0],
          [0, 0],
          [0, 0],
        ],
        { dtype: 'float64' },
      );
    const settings = { lr: 0.1, beta1: 0.9, beta2: 0.99, eps: 1e-8 };
    const flags = tensor([0, 0, 0, 0], { dtype: 'bool' });
    const run = (touched: Tensor, mean: Tensor, at = 1) =>
      noGrad(() =>
        callTensor(
          'torchformer::adam_rows_',
          table.weight,
          gradient,
          mean,
          state(),
          touched,
          tensor(at),
          settings,
        ),
      );
    expect(() => run(tensor([0], { dtype: 'bool' }), state())).toThrow(/touched must be \[4\]/);
    expect(() => run(flags, tensor([[0, 0]], { dtype: 'float64' }))).toThrow(/exp_avg must be/);
    expect(() => run(flags, state(), 0)).toThrow(/step counts from 1/);
  });
});

describe('Trainer', () => {
  it('uses sparse embeddings with its own Adam, to the same losses', async () => {
    const pairs = Array.from({ length: 6 }, (_, i) => ({
      src: [1, 3 + i, 4 + i, 2],
      tgt: [1, 5 + i, 3 + i, 2],
      row: i + 1,
    }));
    const model = makeModel(60, {
      N: 1,
      dModel: 8,
      dFf: 16,
      h: 2,
      dropout: 0,
      attentionDropout: 0,
    });
    const other = model.clone();
    const losses = async (m: typeof model, optimizer?: Adam) => {
      const trainer = new Trainer(m, {
        specialIds: { pad: 0, bos: 1, eos: 2 },
        reporter: null,
        learningRate: 1e-2,
        ...(optimizer === undefined ? {} : { optimizer }),
      });
      const source = () => [makeBatch(pairs.slice(0, 3), 0), makeBatch(pairs.slice(3), 0)];
      await trainer.fit(source, { epochs: 5 });
      return trainer.history.steps.map(({ loss }) => loss);
    };
    const sparse = await losses(model);
    const dense = await losses(other, new Adam(other.parameters()));
    expect(sparse).toHaveLength(10);
    sparse.forEach((loss, index) => {
      expect(Math.abs(loss / (dense[index] as number) - 1)).toBeLessThan(1e-5);
    });
    expect(model.modules().some((m) => m instanceof Embedding && m.sparseGradient)).toBe(false);
  });
});

describe('half types', () => {
  it.each(['bfloat16', 'float16'] as const)('in %s are updated densely', (dtype) => {
    const table = new Embedding(4, 2);
    table.to({ dtype });
    table.sparseGradient = true;
    const before = table.weight.toArray() as number[][];
    const adam = new Adam(table.parameters(), { lr: 0.5 });
    table.forward(ids(1)).sum().backward();
    adam.step();
    const after = table.weight.toArray() as number[][];
    expect([0, 2, 3].map((row) => after[row])).toEqual([0, 2, 3].map((row) => before[row]));
    after[1]!.forEach((value, i) => expect(value).toBeCloseTo(before[1]![i]! - 0.5, 1));
  });

  it('make a model that Trainer trains', async () => {
    const model = makeModel(12, { N: 1, dModel: 16, dFf: 32, h: 2 }).to({ dtype: 'bfloat16' });
    const batch = makeBatch([{ src: [1, 5, 6, 2], tgt: [1, 7, 8, 2], row: 1 }], 0);
    const trainer = new Trainer(model, {
      specialIds: { pad: 0, bos: 1, eos: 2 },
      reporter: null,
      learningRate: 0.01,
    });
    await trainer.fit(() => [batch], { epochs: 20 });
    const losses = trainer.history.steps.map(({ loss }) => loss);
    expect(losses.at(-1)).toBeLessThan((losses[0] as number) - 0.5);
  });
});

describe('the native update of rows', () => {
  it('changes the rows that the gradient has', () => {
    const [tensors, ...rest] = rowUpdate([2, 0]);
    call('torchformer::adam_rows_', ...tensors, ...rest);
    expect(tensors[0]!.toArray()).toEqual([
      [0.5, 0.5],
      [1, 1],
      [0.5, 0.5],
    ]);
  });

  it('takes the learning rate as a tensor, too', () => {
    const [tensors, { lr, ...settings }] = rowUpdate([2, 0]) as [Tensor[], { lr: number }];
    call('torchformer::adam_rows_.tensor_lr', ...tensors, { lr: tensor(lr), ...settings });
    expect(tensors[0]!.toArray()).toEqual([
      [0.5, 0.5],
      [1, 1],
      [0.5, 0.5],
    ]);
  });

  it('refuses a step that is no float32 number', () => {
    const [tensors, settings] = rowUpdate([2]);
    const others = tensors.slice(0, 5);
    expect(() =>
      call('torchformer::adam_rows_', ...others, tensor(1, { dtype: 'int64' }), settings),
    ).toThrow(/step must be a float32 tensor/);
    expect(() => call('torchformer::adam_rows_', ...others, tensor([1, 2]), settings)).toThrow(
      /step must have one element/,
    );
  });

  it.each([
    ['before the first', -1],
    ['behind the last', 3],
    ['far behind', 2 ** 40],
  ])('refuses a row %s, and changes nothing', (_name, row) => {
    const [tensors, ...rest] = rowUpdate([1, row]);
    expect(() => call('torchformer::adam_rows_', ...tensors, ...rest)).toThrow(
      expect.objectContaining({
        code: 'ERR_INDEX',
        message: expect.stringContaining(`indices from 0 to 2, got ${row}`) as string,
      }) as Error,
    );
    expect(tensors[0]!.toArray()).toEqual(ones([3, 2]).toArray());
    expect(tensors[4]!.toArray()).toEqual([false, false, false]);
  });
});
