/**
 * A residual sum and the norm that follows it as one op, "Add & Norm". A hook on a norm prevents it,
 * so that a model with hooks that do nothing is the same model with sums and norms as separate ops.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import {
  autocast,
  Dropout,
  Encoder,
  EncoderLayer,
  keep,
  LayerNorm,
  Linear,
  makeModel,
  manualSeed,
  memory,
  ModuleList,
  MultiHeadedAttention,
  noGrad,
  PackedSequences,
  paddingMask,
  PositionwiseFeedForward,
  profile,
  randn,
  RMSNorm,
  seed000,
  seed002,
  SublayerConnection,
  targetMask,
  tensor,
  tidy,
} from 'torchformer';
import type { ModelOptions, NormOptions, NormOrder, Tensor, Transformer } from 'torchformer';
import { largestDifference, numbers, randomDoubles } from '../../../support/numbers.js';

beforeEach(() => {
  manualSeed(1);
});

const dialects: [string, NormOptions][] = [
  ['seed 001', {}],
  ['seed 000', seed000.norm],
  ['seed 002', seed002.norm],
  ['RMSNorm', { kind: 'rms' }],
];
const cases = dialects.flatMap(([name, norm]) =>
  (['pre', 'post'] as const).map((order) => [name, order, norm] as const),
);

const src = tensor(
  [
    [1, 5, 6, 7, 2],
    [1, 9, 2, 0, 0],
  ],
  { dtype: 'int64' },
);
const tgt = tensor(
  [
    [1, 8, 3, 2],
    [1, 4, 2, 0],
  ],
  { dtype: 'int64' },
);
const srcMask = paddingMask(src, 0);
const tgtMask = targetMask(tgt, 0);

const N = 2;
/** Two residual connections in each layer of the encoder, three in each of the decoder. */
const connections = N * (2 + 3);

function smallModel(options: ModelOptions = {}): Transformer {
  return makeModel(11, { N, dModel: 8, dFf: 16, h: 2, dropout: 0.3, ...options });
}

function forward(model: Transformer): Tensor {
  return model.forward(src, tgt, srcMask, tgtMask);
}

/** The same model, whose norms are asked one by one. */
function withNormsAsked(model: Transformer): Transformer {
  const copy = model.clone();
  for (const module of copy.modules()) {
    if (isNorm(module)) module.registerForwardHook(() => undefined);
  }
  return copy;
}

const isNorm = (module: unknown): module is LayerNorm | RMSNorm =>
  module instanceof LayerNorm || module instanceof RMSNorm;

/** The calls of the ops in question while `work` runs. */
async function callsIn(
  work: () => unknown,
): Promise<{ joined: number; norms: number; dropouts: number }> {
  const { times } = await profile(() => void tidy(() => void work()));
  const calls = (op: string) => times.find((time) => time.op === `torchformer::${op}`)?.calls ?? 0;
  return {
    joined: calls('add_norm'),
    norms: calls('layer_norm') + calls('rms_norm'),
    dropouts: calls('dropout'),
  };
}

/** Result and gradients of a loss that weighs every element differently, by name. */
function trainedOnce(model: Transformer): Map<string, Tensor> {
  manualSeed(7);
  const output = forward(model);
  manualSeed(8);
  output
    .mul(randomDoubles(...output.shape))
    .sum()
    .backward();
  const found = new Map([['output', output.detach()]]);
  for (const [name, { grad }] of model.namedParameters()) {
    if (grad !== null) found.set(name, grad);
  }
  return found;
}

describe('sums and norms as one op', () => {
  it.each(cases)('give values and gradients of %s, %s, with dropout', (_name, order, norm) => {
    const model = smallModel({ order, norm }).double();
    const expected = trainedOnce(withNormsAsked(model));
    const found = trainedOnce(model);
    expect([...found.keys()]).toEqual([...expected.keys()]);
    expect(found.size).toBeGreaterThan(1 + connections);
    for (const [name, values] of expected) {
      const scale = Math.max(1, values.abs().max().item());
      expect(largestDifference(found.get(name)!, values) / scale, name).toBeLessThan(1e-12);
    }
  });

  it.each(cases)(
    'are one call for each residual connection of %s, %s',
    async (_name, order, norm) => {
      const model = smallModel({ order, norm });
      // In 'pre' the first norm of each stack has no sum before it. Dropout of the positions stays.
      const norms = order === 'pre' ? 2 : 0;
      const embeddings = 2;
      expect(await callsIn(() => forward(model))).toEqual({
        joined: connections,
        norms,
        dropouts: embeddings,
      });
      expect(await callsIn(() => forward(model.eval()))).toEqual({
        joined: connections,
        norms,
        dropouts: 0,
      });
    },
  );

  it('are taken on packed rows, with the same values', async () => {
    const model = smallModel().eval();
    const batch = {
      src: tensor([1, 5, 6, 7, 2, 1, 9, 2], { dtype: 'int64' }),
      tgt: tensor([1, 8, 3, 2, 1, 4, 2], { dtype: 'int64' }),
      srcSequences: new PackedSequences([5, 3]),
      tgtSequences: new PackedSequences([4, 3]),
    };
    expect((await callsIn(() => model.forwardPacked(batch))).joined).toBe(connections);
    const packed = noGrad(() => model.forwardPacked(batch));
    const padded = noGrad(() => forward(model));
    expect(largestDifference(packed.slice(0, 0, 4), padded.select(0, 0))).toBeLessThan(1e-5);
  });

  it('keep the sum in float32 under autocast, and give the norm in its format', async () => {
    const seen: string[] = [];
    const connection = new SublayerConnection(8, { order: 'pre' });
    const layer = new EncoderLayer(
      8,
      new MultiHeadedAttention(2, 8),
      new PositionwiseFeedForward(8, 16),
    );
    layer.feedForward.registerForwardPreHook((_module, [normed]) => void seen.push(normed.dtype));
    const x = randn([2, 3, 8]);
    const calls = await callsIn(() =>
      autocast(
        'bfloat16',
        () => {
          seen.push(layer.forward(x, null).dtype);
          seen.push(connection.forward(x, (normed) => normed).dtype);
        },
        { results: 'bfloat16' },
      ),
    );
    expect(seen).toEqual(['bfloat16', 'float32', 'float32']);
    expect(calls.joined).toBe(1);
  });

  it.each(['pre', 'post'] as const)(
    'are taken %s the sublayers under autocast, and give what norms alone give',
    async (order) => {
      const model = smallModel({ order, dropout: 0 }).eval();
      const rounded = (subject: Transformer) =>
        autocast('bfloat16', () => forward(subject), { results: 'bfloat16' });
      expect((await callsIn(() => rounded(model))).joined).toBe(connections);
      const expected = rounded(withNormsAsked(model));
      const found = rounded(model);
      expect(found.dtype).toBe(expected.dtype);
      // A last place of bfloat16 that fell to the other side, for values up to 4.
      const wide = (x: Tensor) => x.to({ dtype: 'float32' });
      expect(largestDifference(wide(found), wide(expected))).toBeLessThan(2 ** -5);
    },
  );

  it('train with the first ten losses of sums and norms one by one', () => {
    const losses = (model: Transformer) => {
      manualSeed(3);
      return Array.from({ length: 10 }, () =>
        tidy(() => {
          for (const one of model.parameters()) one.grad = null;
          const loss = forward(model).sub(1).pow(2).mean();
          loss.backward();
          noGrad(() => {
            for (const one of model.parameters()) if (one.grad) one.sub_(one.grad.mul(0.1));
          });
          return loss.item();
        }),
      );
    };
    const model = smallModel();
    const copy = withNormsAsked(model);
    const found = losses(model);
    losses(copy).forEach((loss, step) => expect(Math.abs(found[step]! - loss)).toBeLessThan(1e-6));
    expect(found[9]).toBeLessThan(found[0]!);
  });

  it('leave no tensors behind but the result', () => {
    const model = smallModel();
    const before = memory().tensors;
    const output = forward(model);
    expect(memory().tensors).toBe(before + 1);
    output.dispose();
    noGrad(() => forward(model)).dispose();
    expect(memory().tensors).toBe(before);
  });
});

describe('who has to be asked is asked', () => {
  const layer = (order: NormOrder = 'pre') =>
    new EncoderLayer(8, new MultiHeadedAttention(2, 8), new PositionwiseFeedForward(8, 16), {
      order,
      dropout: 0.3,
    });
  const x = randn([2, 3, 8]);

  it('a layer alone, which gives its sum and joins what is inside of it', async () => {
    expect(await callsIn(() => layer().eval().forward(x, null))).toMatchObject({
      joined: 1,
      norms: 1,
    });
    expect(await callsIn(() => layer('post').eval().forward(x, null))).toMatchObject({
      joined: 2,
      norms: 0,
    });
  });

  it('hooks of norms, dropouts, connections and layers, each once, with the inputs of before', async () => {
    const seen: string[] = [];
    const encoder = new Encoder(layer(), 2).eval();
    const plain = noGrad(() => encoder.forward(x, null));
    const [first, second] = [encoder.layers.at(0), encoder.layers.at(1)];
    const watched = {
      norm: encoder.norm as LayerNorm,
      dropout: first.sublayers.at(0).dropout,
      connection: first.sublayers.at(1),
      layer: second,
    };
    for (const [name, module] of Object.entries(watched)) {
      module.registerForwardHook((_module, inputs, output) => {
        seen.push(`${name} ${String(inputs[0].shape)} ${String(output.shape)}`);
      });
    }
    const calls = await callsIn(() => {
      keep(noGrad(() => encoder.forward(x, null)));
    });
    expect(seen).toEqual([
      'dropout 2,3,8 2,3,8',
      'connection 2,3,8 2,3,8',
      'layer 2,3,8 2,3,8',
      'norm 2,3,8 2,3,8',
    ]);
    // All that is left is within the second layer.
    expect(calls.joined).toBe(1);
    expect(
      largestDifference(
        noGrad(() => encoder.forward(x, null)),
        plain,
      ),
    ).toBeLessThan(1e-6);
  });

  it('results of hooks take the place of sums and norms', () => {
    const connection = new SublayerConnection(8, { order: 'post', dropout: 0 });
    connection.norm.registerForwardHook((_module, [sum]) => sum);
    expect(numbers(connection.forward(x, (input) => input))).toEqual(numbers(x.mul(2)));
  });

  it('forwards of subclasses: of a norm, a dropout, a connection and a layer', async () => {
    class NoNorm extends LayerNorm {
      override forward(input: Tensor): Tensor {
        return input.mul(1);
      }
    }
    class NoDropout extends Dropout {
      override addTo(residual: Tensor, _input: Tensor): Tensor {
        return residual;
      }
    }
    class Skipping extends SublayerConnection {
      override forward(input: Tensor): Tensor {
        return input;
      }
    }
    class Doubling extends EncoderLayer {
      override forward(input: Tensor): Tensor {
        return input.mul(2);
      }
    }
    const connection = new SublayerConnection(8, { order: 'post', dropout: 0 });
    connection.norm = new NoNorm(8);
    expect(numbers(connection.forward(x, (input) => input))).toEqual(numbers(x.mul(2)));
    connection.dropout = new NoDropout(0);
    expect(numbers(connection.forward(x, (input) => input))).toEqual(numbers(x));

    const skipping = layer();
    skipping.sublayers = new ModuleList<SublayerConnection>([new Skipping(8), new Skipping(8)]);
    expect(numbers(skipping.forward(x, null))).toEqual(numbers(x));
    const doubling = new Doubling(
      8,
      new MultiHeadedAttention(2, 8),
      new PositionwiseFeedForward(8, 16),
    );
    const encoder = new Encoder(doubling, 2, { finalNorm: false });
    expect(numbers(encoder.forward(x, null))).toEqual(numbers(x.mul(4)));
  });

  it('norms of a user, and sums of another shape or dtype than the input', async () => {
    const connection = new SublayerConnection(8, { order: 'post', dropout: 0 });
    const wide = x.to({ dtype: 'float64' });
    connection.norm = new Linear(8, 8) as unknown as LayerNorm;
    expect((await callsIn(() => connection.forward(x, (input) => input))).joined).toBe(0);

    const broadcasting = new SublayerConnection(8, { order: 'post', dropout: 0 });
    const rows = broadcasting.forward(x, (input) => input.select(0, 0));
    const expected = broadcasting.norm.forward(x.add(x.select(0, 0)));
    expect(largestDifference(rows, expected)).toBe(0);
    expect(() => broadcasting.forward(x, () => wide)).toThrow(/float64.*float32/);
    expect(() => broadcasting.forward(x, () => undefined as never)).toThrow(
      /input must be a Tensor, got undefined/,
    );
  });

  it('the probability of a dropout that was set out of range is refused by its name', () => {
    const connection = new SublayerConnection(8, { order: 'post' });
    connection.dropout.p = 2;
    expect(() => connection.forward(x, (input) => input)).toThrow(/Dropout: p must be/);
  });

  it('features and dtypes that do not fit a norm are refused in its words', () => {
    const connection = new SublayerConnection(8, { order: 'post', dropout: 0 });
    expect(() => connection.forward(randn([2, 4]), (input) => input)).toThrow(
      /LayerNorm: the last dimension of input must be 8, got \[2, 4\]/,
    );
    const rms = new SublayerConnection(8, { order: 'post', dropout: 0, norm: { kind: 'rms' } });
    expect(() => rms.forward(randomDoubles(2, 8), (input) => input)).toThrow(
      /RMSNorm: input is float64 but the weights are float32/,
    );
  });
});

describe('on the CPU', () => {
  it.each(dialects)('%s is the same as one op and as two, to the last bit', async (_name, norm) => {
    const model = smallModel({ norm }).eval();
    const asked = withNormsAsked(model);
    expect(await callsIn(() => forward(model))).toMatchObject({ joined: connections });
    expect(await callsIn(() => forward(asked))).toMatchObject({ joined: 0 });
    expect(largestDifference(forward(model), forward(asked))).toBe(0);
  });
});
