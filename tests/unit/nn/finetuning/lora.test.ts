import { beforeEach, describe, expect, it } from 'vitest';
import {
  applyLora,
  autocast,
  evaluate,
  isPackable,
  Linear,
  LoraLinear,
  loraStateDict,
  makeBatch,
  manualSeed,
  memory,
  mergeLora,
  ModuleDict,
  MultiHeadedAttention,
  noGrad,
  PositionwiseFeedForward,
  SequenceGenerator,
  Sequential,
  tensor,
  tidy,
  tokenLossSum,
  Trainer,
  unfreeze,
  zeros,
} from 'torchformer';
import type { Batch, LoraOptions, Module, Tensor, Transformer } from 'torchformer';
import { largestDifference, numbers, randomDoubles } from '../../../support/numbers.js';
import { tinyModel, weightsOf } from '../../../support/tinyTranslation.js';

beforeEach(() => manualSeed(3));

const pairs = [
  { src: [1, 5, 2], tgt: [1, 6, 7, 2], row: 1 },
  { src: [1, 8, 9, 10, 2], tgt: [1, 11, 2], row: 2 },
];
const batch: Batch = makeBatch(pairs, 0);
const specialIds = { pad: 0, bos: 1, eos: 2 };
const everything = ['*.linears.*', '*.feed_forward.*', 'generator.proj'];

function set(layer: Linear, values: number[][]): void {
  noGrad(() => tidy(() => void layer.weight.copy_(tensor(values))));
}

/** Gives B values, as training would. */
function fillUpdates(model: Module): void {
  for (const module of model.modules()) {
    if (module instanceof LoraLinear) noGrad(() => void module.loraB.weight.uniform_(-0.3, 0.3));
  }
}

function modelWithLora(options: LoraOptions = {}): Transformer {
  const model = tinyModel(20, { N: 2 });
  applyLora(model, { rank: 2, targets: everything, ...options });
  fillUpdates(model);
  return model;
}

/** What the decoder returns for the padded batch. */
const outputs = (model: Transformer): Tensor =>
  noGrad(() => model.forward(batch.src, batch.tgt, batch.srcMask, batch.tgtMask));

describe('LoraLinear', () => {
  it('adds (alpha / rank) · B A x to W x + b', () => {
    const layer = new LoraLinear(2, 1, { rank: 1, alpha: 3 });
    set(layer, [[1, 2]]);
    set(layer.loraA, [[10, 20]]);
    set(layer.loraB, [[2]]);
    noGrad(() => layer.bias?.fill_(0.5));
    // 1 · 1 + 2 · 1 + 0.5, and 3 / 1 · 2 · (10 + 20)
    expect(numbers(layer.forward(tensor([[1, 1]])))).toEqual([183.5]);
    expect(layer.scale).toBe(3);
  });

  it('starts with B zero, so that the output is that of the plain layer', () => {
    const linear = new Linear(3, 2);
    const input = tensor([[1, -2, 3]]);
    const plain = numbers(linear.forward(input));
    const layer = LoraLinear.over(linear, { rank: 4 });
    expect(numbers(layer.loraB.weight)).toEqual(Array<number>(8).fill(0));
    expect(numbers(layer.forward(input))).toEqual(plain);
  });

  it('draws A uniformly in ±1/√inFeatures, like the weight of Linear', () => {
    const { weight } = LoraLinear.over(new Linear(100, 2), { rank: 50 }).loraA;
    const values = numbers(weight);
    expect(Math.max(...values)).toBeLessThanOrEqual(0.1);
    expect(Math.max(...values)).toBeGreaterThan(0.099);
    expect(Math.min(...values)).toBeLessThan(-0.099);
  });

  it('trains A and B only', () => {
    const layer = new LoraLinear(3, 2, { rank: 2 });
    fillUpdates(layer);
    layer
      .forward(tensor([[1, 2, 3]]))
      .sum()
      .backward();
    const withGradient = layer.namedParameters().filter(([, { grad }]) => grad !== null);
    expect(withGradient.map(([name]) => name)).toEqual(['lora_A.weight', 'lora_B.weight']);
    expect(layer.namedParameters().map(([name]) => name)).toEqual([
      'weight',
      'bias',
      'lora_A.weight',
      'lora_B.weight',
    ]);
  });

  it('drops inputs of the update in training mode only, never those of W', () => {
    const layer = new LoraLinear(2, 1, { rank: 1, dropout: 1, bias: false });
    set(layer, [[1, 2]]);
    set(layer.loraA, [[1, 1]]);
    set(layer.loraB, [[1]]);
    const input = tensor([[1, 1]]);
    expect(numbers(layer.forward(input))).toEqual([3]);
    expect(numbers(layer.eval().forward(input))).toEqual([5]);
  });

  it('shares weight and bias with the layer that it is put over, in its dtype and mode', () => {
    const linear = new Linear(3, 2).double().eval();
    const layer = LoraLinear.over(linear);
    expect(layer.weight).toBe(linear.weight);
    expect(layer.bias).toBe(linear.bias);
    expect(layer.loraA.weight.dtype).toBe('float64');
    expect([layer.training, layer.loraA.training]).toEqual([false, false]);
    expect([layer.rank, layer.alpha]).toEqual([8, 8]);
  });

  it('merges to a plain layer with the same outputs', () => {
    const layer = new LoraLinear(5, 4, { rank: 2, alpha: 7 }).double();
    fillUpdates(layer);
    const input = randomDoubles(3, 5);
    const before = layer.forward(input).detach();
    const { weight } = layer;
    const linear = layer.merged();
    expect(linear.constructor).toBe(Linear);
    expect(linear.weight).toBe(weight);
    expect(largestDifference(linear.forward(input), before)).toBeLessThan(1e-14);
  });

  it('shows its rank and alpha', () => {
    expect(String(new LoraLinear(3, 2, { rank: 2, alpha: 4 }))).toContain('rank=2, alpha=4');
  });

  it.each<[LoraOptions, string]>([
    [{ rank: 0 }, 'rank must be an integer at least 1, got 0'],
    [{ alpha: 0 }, 'alpha must be a finite number above 0, got 0'],
    [{ dropout: 2 }, 'dropout must be a number from 0 to 1, got 2'],
    [{ r: 8 } as LoraOptions, 'unknown option "r"; valid options: alpha, bias, dropout, rank'],
  ])('refuses %j', (options, message) => {
    expect(() => new LoraLinear(2, 2, options)).toThrow(`LoraLinear: ${message}`);
  });
});

describe('applyLora', () => {
  it('updates queries and values of all attention by default, and freezes the rest', () => {
    const model = tinyModel(20);
    const names = applyLora(model, { rank: 2 });
    expect(names).toEqual([
      'encoder.layers.0.self_attn.linears.0',
      'encoder.layers.0.self_attn.linears.2',
      'decoder.layers.0.self_attn.linears.0',
      'decoder.layers.0.self_attn.linears.2',
      'decoder.layers.0.src_attn.linears.0',
      'decoder.layers.0.src_attn.linears.2',
    ]);
    // 6 layers, each with A [2, 32] and B [32, 2].
    expect(model.parameterCount({ trainable: true })).toBe(6 * 2 * 64);
    expect(model.getSubmodule(names[0] as string)).toBeInstanceOf(LoraLinear);
  });

  it('changes no output and no name of the model', () => {
    const model = tinyModel(20).eval();
    const [before, names] = [outputs(model), [...model.stateDict().keys()]];
    applyLora(model, { targets: everything });
    expect(largestDifference(outputs(model), before)).toBeLessThan(1e-6);
    const after = [...model.stateDict().keys()].filter((name) => !name.includes('lora_'));
    expect(after).toEqual(names);
  });

  it('replaces members of lists, dictionaries and properties', () => {
    const model = new Sequential(new Linear(2, 2), new Linear(2, 2));
    applyLora(model, { targets: '1' });
    expect([...model].map(({ constructor }) => constructor)).toEqual([Linear, LoraLinear]);
    const dictionary = new ModuleDict({ a: new Linear(2, 2) });
    applyLora(dictionary, { targets: 'a' });
    expect(dictionary.get('a')).toBeInstanceOf(LoraLinear);
    expect([...dictionary.keys()]).toEqual(['a']);
  });

  it('names layers that are like a misspelt target', () => {
    const model = tinyModel(20);
    expect(() => applyLora(model, { targets: '*.self_attention.linears.0' })).toThrow(
      'applyLora: targets *.self_attention.linears.0 matches no linear layer; names are such as ' +
        'encoder.layers.0.self_attn.linears.0',
    );
    expect(model.parameterCount({ trainable: false })).toBe(0);
  });

  it('refuses a tied weight, which the merged update would change elsewhere too', () => {
    const model = tinyModel(20, { tie: 'all' });
    expect(() => applyLora(model, { targets: ['*.linears.0', 'generator.*'] })).toThrow(
      'applyLora: the weight of generator.proj is tied to src_embed.0.embedding.weight, ' +
        'tgt_embed.0.embedding.weight',
    );
    expect(model.parameterCount({ trainable: false })).toBe(0);
    expect(applyLora(model)).toHaveLength(6);
  });

  it('refuses a second set of updates, hooks, and classes with a forward of their own', () => {
    const model = tinyModel(20);
    applyLora(model);
    expect(() => applyLora(model, { targets: 'generator.proj' })).toThrow(
      'applyLora: the model already has LoRA layers',
    );
    const hooked = tinyModel(20);
    hooked.generator.proj.registerForwardHook(() => undefined);
    expect(() => applyLora(hooked, { targets: 'generator.*' })).toThrow(
      'generator.proj has hooks or a user-defined forward',
    );
    class Scaled extends Linear {}
    const own = tinyModel(20);
    own.generator.proj = new Scaled(32, 20);
    expect(() => applyLora(own, { targets: 'generator.*' })).toThrow('generator.proj is a Scaled');
  });
});

describe('fused layers do not pass over the update', () => {
  it('feed-forward: B changes the output, and gets the gradient of w2(relu(w1(x)))', () => {
    const layer = new PositionwiseFeedForward(4, 6, { dropout: 0 }).double();
    const plain = layer.clone();
    applyLora(layer, { rank: 2, targets: 'w_*' });
    fillUpdates(layer);
    const input = randomDoubles(2, 3, 4);
    const output = layer.forward(input);
    expect(largestDifference(output, plain.forward(input))).toBeGreaterThan(0.01);
    output.sum().backward();
    const [gradientA, gradientB] = ['lora_A', 'lora_B'].map((part) =>
      numbers(layer.getParameter(`w_1.${part}.weight`).grad as Tensor),
    );
    expect(gradientA?.some((value) => value !== 0)).toBe(true);
    expect(gradientB?.some((value) => value !== 0)).toBe(true);
    mergeLora(layer);
    expect(largestDifference(output, layer.forward(input))).toBeLessThan(1e-14);
  });

  it.each(['gelu', 'swiglu'] as const)(
    'feed-forward with %s: equal to the merged',
    (activation) => {
      const layer = new PositionwiseFeedForward(4, 6, { activation }).double().eval();
      applyLora(layer, { rank: 2, targets: '*' });
      fillUpdates(layer);
      const input = randomDoubles(2, 3, 4);
      const output = layer.forward(input);
      mergeLora(layer);
      expect(largestDifference(output, layer.forward(input))).toBeLessThan(1e-14);
    },
  );

  it('feed-forward: hooks of its parts are called', () => {
    const layer = new PositionwiseFeedForward(4, 6).eval();
    const fused = layer.forward(zeros([1, 4]));
    let calls = 0;
    layer.w2.registerForwardHook(() => void calls++);
    expect(largestDifference(layer.forward(zeros([1, 4])), fused)).toBeLessThan(1e-6);
    expect(calls).toBe(1);
  });

  it('attention: each of the four projections', () => {
    const attention = new MultiHeadedAttention(2, 4, { dropout: 0 }).double();
    applyLora(attention, { rank: 2, targets: 'linears.*' });
    fillUpdates(attention);
    const input = randomDoubles(1, 3, 4);
    const output = attention.forward(input, input, input);
    mergeLora(attention);
    const merged = attention.forward(input, input, input);
    expect(largestDifference(output, merged)).toBeLessThan(1e-14);
  });

  it('the last layer with its loss: padded, packed and merged models have the same loss', () => {
    const model = modelWithLora();
    const loss = (value: Batch) => noGrad(() => tokenLossSum(model, value, 0).item());
    expect(isPackable(model)).toBe(true);
    const packed = loss(batch);
    // A hook that changes nothing makes the model run on the padded batch.
    const hook = model.encoder.registerForwardHook(() => undefined);
    expect(isPackable(model)).toBe(false);
    expect(Math.abs(loss(batch) - packed)).toBeLessThan(1e-5);
    hook.remove();
    const plain = tinyModel(20, { N: 2 });
    expect(Math.abs(noGrad(() => tokenLossSum(plain, batch, 0).item()) - packed)).toBeGreaterThan(
      0.01,
    );
    mergeLora(model);
    expect(Math.abs(loss(batch) - packed)).toBeLessThan(1e-5);
  });
});

describe('training with LoRA', () => {
  it('has the gradients of A and B that the merged weight has by the chain rule', () => {
    const model = modelWithLora().double();
    const name = 'encoder.layers.0.feed_forward.w_1';
    tokenLossSum(model, batch, 0).backward();
    const layer = model.getSubmodule(name, LoraLinear);
    const [a, b] = [layer.loraA.weight.detach().clone(), layer.loraB.weight.detach().clone()];
    const [gradA, gradB] = [layer.loraA.weight.grad, layer.loraB.weight.grad] as [Tensor, Tensor];
    const scale = layer.scale;
    mergeLora(model);
    unfreeze(model);
    tokenLossSum(model, batch, 0).backward();
    const gradW = model.getParameter(`${name}.weight`).grad as Tensor;
    expect(largestDifference(gradA, b.t().matmul(gradW).mul(scale))).toBeLessThan(1e-10);
    expect(largestDifference(gradB, gradW.matmul(a.t()).mul(scale))).toBeLessThan(1e-10);
    expect(numbers(gradB).some((value) => Math.abs(value) > 1e-3)).toBe(true);
  });

  it('Trainer lowers the loss, changes only A and B, and leaves no tensor behind', async () => {
    const model = tinyModel(20);
    applyLora(model, { rank: 4, targets: everything });
    const before = weightsOf(model);
    const trainer = new Trainer(model, { specialIds, learningRate: 0.02, reporter: null });
    await trainer.fit([batch], { epochs: 1 });
    const tensors = memory().tensors;
    const { history } = await trainer.fit([batch], { epochs: 60 });
    // Garbage of earlier tests may be collected in between, which only lowers the number.
    expect(memory().tensors).toBeLessThanOrEqual(tensors);
    expect(history.steps.at(-1)?.loss).toBeLessThan(0.5);
    for (const [name, weight] of Object.entries(weightsOf(model))) {
      if (name.includes('lora_')) expect(weight, name).not.toEqual(before[name]);
      else expect(weight, name).toEqual(before[name]);
    }
    const { loss } = await evaluate(model, [batch], { pad: 0 });
    mergeLora(model);
    const merged = await evaluate(model, [batch], { pad: 0 });
    expect(Math.abs((merged.loss ?? 0) - (loss ?? 0))).toBeLessThan(1e-5);
    trainer.dispose();
  });

  it('runs with bfloat16 products', () => {
    const model = modelWithLora();
    const exact = tokenLossSum(model, batch, 0).item();
    const loss = autocast('bfloat16', () => tokenLossSum(model, batch, 0));
    loss.backward();
    expect(Math.abs(loss.item() - exact) / exact).toBeLessThan(0.02);
    expect(model.generator.proj).toBeInstanceOf(LoraLinear);
    expect((model.generator.proj as LoraLinear).loraB.weight.grad?.dtype).toBe('float32');
  });
});

describe('mergeLora', () => {
  it('makes an ordinary model again: classes, names, and the same Parameter objects', () => {
    const plain = tinyModel(20, { N: 2 });
    const model = tinyModel(20, { N: 2 });
    const parameters = model.parameters();
    applyLora(model, { targets: everything });
    fillUpdates(model);
    expect(mergeLora(model)).toHaveLength(33);
    expect([...model.stateDict().keys()]).toEqual([...plain.stateDict().keys()]);
    expect(String(model)).toBe(String(plain));
    expect(model.parameters()).toEqual(parameters);
    expect(model.blueprint?.differences(model)).toEqual([]);
  });

  it('keeps outputs within 1e-6', () => {
    const model = modelWithLora().eval();
    const before = outputs(model);
    mergeLora(model);
    const difference = largestDifference(outputs(model), before);
    expect(difference).toBeLessThan(2e-6);
  });

  it('of B zero, as after no training, leaves every weight as it was, to the bit', () => {
    const model = tinyModel(20);
    const before = weightsOf(model);
    applyLora(model, { targets: everything });
    mergeLora(model);
    expect(weightsOf(model)).toEqual(before);
  });

  it('merges a copy, too, which leaves the original as it is', () => {
    const model = modelWithLora().eval();
    const copy = model.clone();
    mergeLora(copy);
    expect(largestDifference(outputs(copy), outputs(model))).toBeLessThan(2e-6);
    expect(model.generator.proj).toBeInstanceOf(LoraLinear);
  });

  it('decodes as before, and natively again: only native code has a beam', async () => {
    const model = modelWithLora().eval();
    const sources = pairs.map(({ src }) => src);
    const decode = (beam: number) =>
      new SequenceGenerator(model, { specialIds }).generate(sources, { maxLength: 8, beam });
    const before = await decode(1);
    await expect(decode(2)).rejects.toThrow('encoder.layers.0.self_attn.linears.0 is not as');
    mergeLora(model);
    expect(await decode(1)).toEqual(before);
    expect(await decode(2)).toHaveLength(2);
  });

  it('frees A and B', () => {
    const model = tinyModel(20);
    const before = memory().tensors;
    applyLora(model, { targets: everything });
    mergeLora(model);
    expect(memory().tensors).toBe(before);
  });

  it('refuses a model without LoRA layers, and layers with hooks', () => {
    const model = tinyModel(20);
    expect(() => mergeLora(model)).toThrow(
      'mergeLora: the model has no LoRA layers; applyLora(model) adds them',
    );
    applyLora(model);
    model.getSubmodule('encoder.layers.0.self_attn.linears.0').registerForwardHook(() => undefined);
    expect(() => mergeLora(model)).toThrow('hooks or a user-defined forward, which would be lost');
  });
});

describe('loraStateDict', () => {
  it('has A and B of each layer, under the names of the library peft', () => {
    const model = tinyModel(20);
    applyLora(model, { rank: 2, targets: 'generator.proj' });
    const state = loraStateDict(model);
    expect([...state].map(([name, { shape }]) => [name, ...shape])).toEqual([
      ['generator.proj.lora_A.weight', 2, 32],
      ['generator.proj.lora_B.weight', 20, 2],
    ]);
    expect(() => loraStateDict(tinyModel(20))).toThrow('the model has no LoRA layers');
  });
});
