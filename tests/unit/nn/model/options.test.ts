import { beforeEach, describe, expect, it } from 'vitest';
import {
  callTensor,
  Decoder,
  DecoderLayer,
  Encoder,
  EncoderLayer,
  Generator,
  grad,
  LayerNorm,
  LearnedPositions,
  manualSeed,
  MultiHeadedAttention,
  PositionalEncoding,
  PositionwiseFeedForward,
  randn,
  RMSNorm,
  RotaryPositions,
  SublayerConnection,
  tensor,
  zeros,
} from 'torchformer';
import type { Activation, Module, Tensor } from 'torchformer';
import { gradientError } from '../../../support/gradcheck.js';
import { largestDifference, numbers, randomDoubles } from '../../../support/numbers.js';

beforeEach(() => manualSeed(2));

function expectClose(output: Tensor, expected: readonly number[], digits = 6): void {
  const values = numbers(output);
  expect(values).toHaveLength(expected.length);
  values.forEach((value, index) => expect(value).toBeCloseTo(expected[index] as number, digits));
}

/** Values and gradients of a module in float64 against plain ops. */
function expectEqual(module: Module, input: Tensor, output: Tensor, reference: Tensor): void {
  expect(largestDifference(output, reference)).toBeLessThan(1e-12);
  const leaves = [input, ...module.parameters()];
  const upstream = output.detach().cos();
  const gradients = grad(output.mul(upstream).sum(), leaves);
  const expected = grad(reference.mul(upstream).sum(), leaves);
  gradients.forEach((gradient, index) => {
    expect(largestDifference(gradient, expected[index] as Tensor)).toBeLessThan(1e-10);
  });
}

describe('RMSNorm', () => {
  it('divides by the root mean square: of [1, 7] that is 5', () => {
    const norm = new RMSNorm(2, { eps: 1e-12 });
    expectClose(norm.forward(tensor([[1, 7]])), [0.2, 1.4]);
    expect([...norm.stateDict().keys()]).toEqual(['weight']);
  });

  it('has eps 1e-6 under the root', () => {
    expect(new RMSNorm(2).eps).toBe(1e-6);
    expectClose(new RMSNorm(2, { eps: 0.75 }).forward(tensor([[0.5, 0.5]])), [0.5, 0.5]);
    expectClose(new RMSNorm(3).forward(zeros([1, 3])), [0, 0, 0]);
  });

  it('equals plain ops', () => {
    const norm = new RMSNorm(5, { eps: 1e-3 }).double();
    const input = randomDoubles(2, 3, 5).requiresGrad_();
    const plain = input
      .div(input.pow(2).mean(-1, { keepdim: true }).add(1e-3).sqrt())
      .mul(norm.weight);
    expectEqual(norm, input, norm.forward(input), plain);
  });

  it('refuses other sizes and options', () => {
    expect(() => new RMSNorm(0)).toThrow(/features must be an integer at least 1/);
    expect(() => new RMSNorm(2, { eps: -1 })).toThrow(/eps must be a finite number above 0/);
    expect(() => new RMSNorm(2, { bias: true } as object)).toThrow(/valid options: eps/);
    expect(() => new RMSNorm(2).forward(zeros([3]))).toThrow(/last dimension of input must be 2,/);
    expect(String(new RMSNorm(2))).toBe('RMSNorm(2, eps=1e-6)');
  });
});

describe('SublayerConnection', () => {
  const input = () => tensor([[[1, 7]]]);
  const square = (x: Tensor) => x.pow(2);

  it('pre: adds what the sublayer makes of the normed input', () => {
    const connection = new SublayerConnection(2, { dropout: 0, norm: { kind: 'rms', eps: 1e-12 } });
    expect(connection.order).toBe('pre');
    // [1, 7] + [0.2, 1.4]²
    expectClose(connection.forward(input(), square), [1.04, 8.96], 5);
  });

  it('post: norms the sum of input and result', () => {
    const options = { dropout: 0, order: 'post', norm: { kind: 'rms', eps: 1e-12 } } as const;
    const connection = new SublayerConnection(2, options);
    // [1, 7] + [1, 49] = [2, 56], root mean square √1570
    expectClose(connection.forward(input(), square), [2 / Math.sqrt(1570), 56 / Math.sqrt(1570)]);
    expect(String(connection)).toMatch(/order='post'/);
  });

  it('takes modules as sublayers in both orders', () => {
    for (const order of ['pre', 'post'] as const) {
      const connection = new SublayerConnection(2, { dropout: 0, order });
      const sublayer = new LayerNorm(2);
      const byFunction = connection.forward(input(), (x) => sublayer.forward(x));
      expect(numbers(connection.forward(input(), sublayer))).toEqual(numbers(byFunction));
    }
  });

  it('drops out of the result only, never of the input', () => {
    for (const [order, expected] of [
      ['pre', [1, 7]],
      ['post', [0.2, 1.4]],
    ] as const) {
      const norm = { kind: 'rms', eps: 1e-12 } as const;
      const connection = new SublayerConnection(2, { dropout: 1, order, norm });
      expectClose(connection.forward(input(), square), expected);
      connection.eval();
      expect(
        largestDifference(connection.forward(input(), square), tensor([[expected]])),
      ).toBeGreaterThan(0.01);
    }
  });

  it('has the norm of each dialect', () => {
    const norm = new SublayerConnection(4, {
      norm: { std: 'sample', epsPlace: 'outside', names: 'k/b' },
    }).norm;
    expectClose(norm.forward(tensor([[1, 0, 0, 0]])), [1.499997, -0.499999, -0.499999, -0.499999]);
    expect([...norm.stateDict().keys()]).toEqual(['k', 'b']);
    const torch = new SublayerConnection(4, { norm: { eps: 1e-5, names: 'weight/bias' } }).norm;
    expectClose(torch.forward(tensor([[1, 0, 0, 0]])), [1.732005, -0.577335, -0.577335, -0.577335]);
  });

  it('refuses other orders and options', () => {
    expect(() => new SublayerConnection(2, { order: 'after' as 'post' })).toThrow(
      /SublayerConnection: order must be 'pre' or 'post', got the string "after"/,
    );
    expect(() => new SublayerConnection(2, { normal: {} } as object)).toThrow(/"normal"/);
    expect(() => new SublayerConnection(1, { norm: { std: 'sample' } })).toThrow(/at least 2/);
  });
});

describe('layers and stacks', () => {
  const layers = (order: 'pre' | 'post') => {
    const options = { order, norm: { kind: 'rms' } } as const;
    const attn = () => new MultiHeadedAttention(2, 4);
    const feedForward = new PositionwiseFeedForward(4, 6);
    return {
      encoder: new EncoderLayer(4, attn(), feedForward, options),
      decoder: new DecoderLayer(4, attn(), attn(), feedForward, options),
    };
  };

  it('end with a norm of the layers kind where no layer did', () => {
    const pre = layers('pre');
    expect(new Encoder(pre.encoder, 2).norm).toBeInstanceOf(RMSNorm);
    expect(new Decoder(pre.decoder, 2).norm).toBeInstanceOf(RMSNorm);
    expect(new Encoder(pre.encoder, 2, { finalNorm: false }).norm).toBeNull();
    const post = layers('post');
    expect(new Encoder(post.encoder, 2).norm).toBeNull();
    expect(new Decoder(post.decoder, 2).norm).toBeNull();
    expect(new Decoder(post.decoder, 2, { finalNorm: true }).norm).toBeInstanceOf(RMSNorm);
  });

  it('post: every output row has a root mean square of 1', () => {
    const { encoder, decoder } = layers('post');
    const memory = new Encoder(encoder, 2).forward(randn([2, 3, 4]), null);
    const output = new Decoder(decoder, 2).forward(randn([2, 3, 4]), memory, null, null);
    for (const result of [memory, output]) {
      expectClose(result.pow(2).mean(-1).flatten(), Array<number>(6).fill(1), 3);
    }
  });

  it('refuse unknown options under their own name', () => {
    const { encoder, decoder } = layers('pre');
    expect(() => new Encoder(encoder, 2, { norm: false } as object)).toThrow(/^Encoder: unknown/);
    expect(() => new Decoder(decoder, 2, { finalNorm: 0 as unknown as boolean })).toThrow(
      /^Decoder: finalNorm/,
    );
    expect(
      () => new EncoderLayer(4, encoder.selfAttn, encoder.feedForward, { final: 1 } as object),
    ).toThrow(/^EncoderLayer: unknown option "final"; valid options: dropout, norm, order/);
  });
});

describe('positions', () => {
  it('perColumn: each column has an exponent of its own', () => {
    const encoding = new PositionalEncoding(4, { dropout: 0, formula: 'perColumn' });
    expectClose(encoding.pe.select(1, 1).flatten(), [0.841471, 0.995004, 0.01, 1], 6);
    const paired = new PositionalEncoding(4, { dropout: 0 });
    expectClose(paired.pe.select(1, 1).flatten(), [0.841471, 0.540302, 0.01, 0.99995], 6);
    expect(String(encoding)).toContain("formula='perColumn'");
  });

  it('perColumn: is the formula, for odd sizes too, and grows and changes dtype', () => {
    const encoding = new PositionalEncoding(5, { maxLen: 2, formula: 'perColumn' })
      .double()
      .grow(4);
    const expected = [0, 1, 2, 3].flatMap((position) =>
      [0, 1, 2, 3, 4].map((column) => {
        const angle = position / 10000 ** (column / 5);
        return column % 2 === 0 ? Math.sin(angle) : Math.cos(angle);
      }),
    );
    expectClose(encoding.pe.flatten(), expected, 14);
  });

  it('learned: adds a trained vector for each position', () => {
    const positions = new LearnedPositions(2, { dropout: 0, maxLen: 3 });
    const output = positions.forward(zeros([2, 2, 2]));
    expect(numbers(output.select(0, 1))).toEqual(numbers(positions.pe).slice(0, 4));
    output.sum().backward();
    expect(numbers(positions.pe.grad as Tensor)).toEqual([2, 2, 2, 2, 0, 0]);
    expect([...positions.stateDict().keys()]).toEqual(['pe']);
    expect(() => positions.forward(zeros([1, 4, 2]))).toThrow(/4 positions, but the table has 3/);
    expect(() => positions.forward(zeros([4, 2]))).toThrow(/must be \[B, S, 2\], got \[4, 2\]/);
    expect(() => positions.grow(4)).toThrow(TypeError);
    expect(positions.grow(3).maxLen).toBe(3);
  });

  it('rotary: turns each pair of features by its angle', () => {
    const rotary = new RotaryPositions(4, { maxLen: 3 });
    const input = tensor([
      [1, 0, 1, 0],
      [1, 0, 1, 0],
      [0, 1, 0, 1],
    ]);
    const [slow, fast] = [0.01, 1];
    expectClose(rotary.forward(input), [
      ...[1, 0, 1, 0],
      ...[Math.cos(fast), Math.sin(fast), Math.cos(slow), Math.sin(slow)],
      ...[-Math.sin(2 * fast), Math.cos(2 * fast), -Math.sin(2 * slow), Math.cos(2 * slow)],
    ]);
    expect([...rotary.stateDict().keys()]).toEqual([]);
  });

  it('rotary: products of queries and keys depend on their distance only', () => {
    const rotary = new RotaryPositions(6, { maxLen: 9 }).double();
    const [query, key] = [randomDoubles(6), randomDoubles(6)];
    const at = (vector: Tensor) => rotary.forward(vector.expand(9, 6));
    const products = at(query).matmul(at(key).t()).toArray() as number[][];
    const product = (i: number, j: number) => products[i]?.[j] as number;
    expect(product(5, 3)).toBeCloseTo(product(2, 0), 12);
    expect(product(1, 8)).toBeCloseTo(product(0, 7), 12);
    expect(Math.abs(product(5, 3) - product(3, 5))).toBeGreaterThan(1e-3);
  });

  it('rotary: keeps lengths, has exact gradients, and keeps its precision in every dtype', () => {
    const rotary = new RotaryPositions(4, { maxLen: 5 }).double();
    const input = randomDoubles(2, 2, 5, 4);
    const lengths = (x: Tensor) => x.pow(2).sum(-1);
    expect(largestDifference(lengths(rotary.forward(input)), lengths(input))).toBeLessThan(1e-12);
    expect(gradientError((x) => rotary.forward(x), [randomDoubles(3, 4)])).toBeLessThan(1e-8);
    expectClose(
      rotary.table.select(1, 3).flatten(),
      [Math.sin(3), Math.cos(3), Math.sin(0.03), Math.cos(0.03)],
      14,
    );
  });

  it('rotary: refuses odd sizes, and sequences beyond the table', () => {
    expect(() => new RotaryPositions(3)).toThrow(/size must be even, .* got 3/);
    const rotary = new RotaryPositions(2, { maxLen: 3 });
    expect(() => rotary.forward(zeros([4, 2]))).toThrow(
      /4 positions, but the table has 3; .* grow\(4\)/,
    );
    expect(rotary.grow(4).forward(zeros([4, 2])).shape).toEqual([4, 2]);
    expect(() => rotary.forward(zeros([2]))).toThrow(/must be \[…, S, 2\], got \[2\]/);
  });
});

describe('PositionwiseFeedForward', () => {
  const plain: Record<Activation, (a: Tensor, gate: Tensor | undefined) => Tensor> = {
    relu: (a) => a.relu(),
    gelu: (a) => a.mul(callTensor('aten::erf', a.div(Math.SQRT2)).add(1)).div(2),
    swiglu: (a, gate) => a.mul(a.sigmoid()).mul(gate as Tensor),
  };

  it.each([
    ['relu', true],
    ['relu', false],
    ['gelu', true],
    ['gelu', false],
    ['swiglu', true],
    ['swiglu', false],
  ] as const)('%s with biases %s equals plain ops', (activation, bias) => {
    const module = new PositionwiseFeedForward(4, 6, { dropout: 0, activation, bias }).double();
    const input = randomDoubles(2, 3, 4).requiresGrad_();
    const { w1, w2, w3 } = module;
    const hidden = plain[activation](w1.forward(input), w3?.forward(input));
    expectEqual(module, input, module.forward(input), w2.forward(hidden));
    expect(module.parameters()).toHaveLength((w3 === null ? 2 : 3) * (bias ? 2 : 1));
    expect(w3 === null).toBe(activation !== 'swiglu');
  });

  it('has known values at 1: gelu 0.841345, silu 0.731059 (here times 2)', () => {
    for (const [activation, value] of [
      ['relu', 1],
      ['gelu', 0.841345],
      ['swiglu', 2 * 0.7310586],
    ] as const) {
      const module = new PositionwiseFeedForward(1, 1, { dropout: 0, activation, bias: false });
      module.w1.weight.detach().fill_(1);
      module.w2.weight.detach().fill_(1);
      module.w3?.weight.detach().fill_(2);
      expectClose(module.forward(tensor([[1]])), [value]);
    }
  });

  it('drops out between activation and last layer', () => {
    for (const activation of ['gelu', 'swiglu'] as const) {
      const module = new PositionwiseFeedForward(4, 6, { dropout: 1, activation });
      expect(numbers(module.forward(randn([1, 4])))).toEqual(numbers(module.w2.bias as Tensor));
      expect(numbers(module.eval().forward(randn([1, 4])))).not.toEqual(
        numbers(module.w2.bias as Tensor),
      );
    }
  });

  it('refuses other activations', () => {
    expect(() => new PositionwiseFeedForward(4, 6, { activation: 'tanh' as 'relu' })).toThrow(
      /activation must be 'relu', 'gelu' or 'swiglu', got the string "tanh"/,
    );
    expect(() => new PositionwiseFeedForward(4, 6, { bias: 1 as unknown as boolean })).toThrow(
      /bias/,
    );
  });
});

describe('MultiHeadedAttention', () => {
  it('without biases and with rotary positions equals plain ops', () => {
    const module = new MultiHeadedAttention(2, 8, {
      dropout: 0,
      bias: false,
      rotary: { maxLen: 5 },
    }).double();
    const input = randomDoubles(2, 5, 8).requiresGrad_();
    const [q, k, v] = [0, 1, 2].map((index) =>
      module.linears.at(index).forward(input).view(2, 5, 2, 4).transpose(1, 2),
    ) as [Tensor, Tensor, Tensor];
    const rotary = module.rotary as RotaryPositions;
    const scores = rotary.forward(q).matmul(rotary.forward(k).transpose(-1, -2)).div(2);
    const heads = scores.softmax(-1).matmul(v).transpose(1, 2).reshape(2, 5, 8);
    const plain = module.linears.at(3).forward(heads);
    expectEqual(module, input, module.forward(input, input, input), plain);
    expect([...module.stateDict().keys()]).toEqual(
      [0, 1, 2, 3].map((index) => `linears.${index}.weight`),
    );
  });

  it.each([
    ['rotary', { rotary: {} }],
    ['no biases', { bias: false }],
    ['zero for empty rows', { emptyRows: 'zero' }],
  ] as const)('with %s gives a row of a batch the result of the row alone', (_, options) => {
    const module = new MultiHeadedAttention(2, 8, options).eval();
    const input = randn([3, 5, 8]);
    const mask = tensor([[[1, 1, 1, 1, 1]], [[1, 1, 1, 0, 0]], [[0, 0, 0, 0, 0]]]);
    const together = module.forward(input, input, input, mask);
    for (const [row, length] of [
      [0, 5],
      [1, 3],
    ] as const) {
      const single = input.narrow(0, row, 1).narrow(1, 0, length);
      const alone = module.forward(single, single, single);
      const same = together.narrow(0, row, 1).narrow(1, 0, length);
      expect(largestDifference(same, alone)).toBeLessThan(1e-6);
    }
    expect(numbers(together).every(Number.isFinite)).toBe(true);
  });

  it('refuses rotary positions of odd heads, and other options', () => {
    expect(() => new MultiHeadedAttention(2, 6, { rotary: {} })).toThrow(/even, .* got 3/);
    expect(() => new MultiHeadedAttention(2, 8, { biases: true } as object)).toThrow(
      /valid options: bias, dropout, emptyRows, keepAttention, rotary/,
    );
    const module = new MultiHeadedAttention(2, 8, { rotary: { maxLen: 3 } });
    const long = zeros([1, 4, 8]);
    expect(() => module.forward(long, long, long)).toThrow(/4 positions, but the table has 3/);
  });
});

describe('Generator', () => {
  it('can do without bias', () => {
    const generator = new Generator(4, 3, { bias: false });
    expect([...generator.stateDict().keys()]).toEqual(['proj.weight']);
    expect(numbers(generator.logits(zeros([1, 4])))).toEqual([0, 0, 0]);
    expect(() => new Generator(4, 3, { biases: false } as object)).toThrow(/^Generator: unknown/);
  });
});
