/** Modules, losses, masks and optimizers: made and called with good values, then with spoilt ones. */
import * as tf from '../../dist/index.js';
import { mutate } from './mutate.mjs';
import { anything, ids, odd, tensor } from './values.mjs';

const width = 4;
const vocabulary = 9;
const vectors = (r, length = 3) => tensor(r, [2, length, width], 'float32');
const tokens = (r, length = 3) => ids(r, [2, length], vocabulary);
const heads = () => new tf.MultiHeadedAttention(2, width);
const feedForward = () => new tf.PositionwiseFeedForward(width, 6);
const encoderLayer = () => new tf.EncoderLayer(width, heads(), feedForward());
const decoderLayer = () => new tf.DecoderLayer(width, heads(), heads(), feedForward());
const modelOptions = { N: 1, dModel: width, dFf: 6, h: 2, dropout: 0, maxLen: 8 };

const mask = (r, ...sizes) => tensor(r, sizes, 'bool');
const padding = (r) => r.pick([null, tf.ones([2, 1, 3], { dtype: 'bool' }), mask(r, 2, 1, 3)]);
const causal = (r) => r.pick([null, tf.subsequentMask(3), mask(r, 2, 3, 3), mask(r, 3, 3)]);

/** Class → good arguments of the constructor, and of its forward. */
const modules = {
  Linear: [(r) => [width, 5, { bias: r.chance(50) }], (r) => [vectors(r)]],
  Embedding: [() => [vocabulary, width], (r) => [tokens(r)]],
  Dropout: [(r) => [r.pick([0, 0.5, 1])], (r) => [vectors(r)]],
  LayerNorm: [
    (r) => [width, { eps: 1e-6, std: r.pick(['population', 'sample']), epsPlace: 'outside' }],
    (r) => [vectors(r)],
  ],
  RMSNorm: [() => [width, { eps: 1e-6 }], (r) => [vectors(r)]],
  Generator: [() => [width, vocabulary], (r) => [vectors(r)]],
  PositionwiseFeedForward: [
    (r) => [width, 6, { activation: r.pick(['relu', 'gelu', 'swiglu']), dropout: 0.1, bias: true }],
    (r) => [vectors(r)],
  ],
  PositionalEncoding: [
    (r) => [width, { maxLen: 5, dropout: 0, formula: r.pick(['paired', 'perColumn']) }],
    (r) => [vectors(r)],
  ],
  LearnedPositions: [() => [width, { maxLen: 5 }], (r) => [vectors(r)]],
  RotaryPositions: [() => [width, { maxLen: 5 }], (r) => [tensor(r, [2, 2, 3, width], 'float32')]],
  TransformerEmbedding: [() => [width, vocabulary], (r) => [tokens(r)]],
  MultiHeadedAttention: [
    (r) => [
      2,
      width,
      { dropout: 0.1, keepAttention: r.chance(30), emptyRows: r.pick(['uniform', 'zero']) },
    ],
    (r) => [vectors(r), vectors(r), vectors(r), r.chance(50) ? padding(r) : causal(r)],
  ],
  SublayerConnection: [
    (r) => [width, { dropout: 0.1, order: r.pick(['pre', 'post']) }],
    (r) => [vectors(r), r.pick([(x) => x, () => tf.zeros([1]), feedForward()])],
  ],
  EncoderLayer: [() => [width, heads(), feedForward(), {}], (r) => [vectors(r), padding(r)]],
  DecoderLayer: [
    () => [width, heads(), heads(), feedForward()],
    (r) => [vectors(r), vectors(r), padding(r), causal(r)],
  ],
  Encoder: [(r) => [encoderLayer(), r.below(3)], (r) => [vectors(r), padding(r)]],
  Decoder: [
    (r) => [decoderLayer(), r.below(3)],
    (r) => [vectors(r), vectors(r), padding(r), causal(r)],
  ],
  Sequential: [() => [new tf.Linear(width, 3), new tf.Linear(3, 2)], (r) => [vectors(r)]],
  ModuleList: [() => [[new tf.Linear(width, 3), feedForward()]], () => []],
  ModuleDict: [() => [{ a: new tf.Linear(width, 3) }], () => []],
  CrossEntropyLoss: [
    (r) => [{ ignoreIndex: r.pick([null, 0]), reduction: r.pick(['sum', 'mean', 'none']) }],
    (r) => [tensor(r, [4, vocabulary], 'float32'), ids(r, [4], vocabulary)],
  ],
  PackedSequences: [(r) => [r.list(1, 3, () => r.below(4))], () => []],
  Parameter: [(r) => [tensor(r), { requiresGrad: r.chance(50) }], () => []],
  Buffer: [(r) => [tensor(r), { persistent: r.chance(50) }], () => []],
};

/** Methods that every module has. */
const common = [
  ['stateDict', () => [{ prefix: 'a.' }]],
  ['loadStateDict', (r, module) => [spoiltState(r, module), { strict: r.chance(70) }]],
  ['to', (r) => [r.pick([{ dtype: 'float64' }, 'bfloat16', 'float16', { device: 'cpu' }])]],
  ['train', (r) => [r.chance(50)]],
  ['requiresGrad_', (r) => [r.chance(50)]],
  ['zeroGrad', () => []],
  ['clone', () => []],
  ['apply', () => [() => undefined]],
  ['parameters', () => [{}]],
  ['namedParameters', () => [{ prefix: 'a' }]],
  ['registerForwardHook', (r) => [() => anything(r), {}]],
  ['toString', () => []],
  ['dispose', () => []],
  ['grow', () => [9]],
  ['append', () => [new tf.Linear(1, 1)]],
  ['insert', () => [1, new tf.Linear(1, 1)]],
  ['pop', () => [0]],
  ['slice', () => [0, 1]],
  ['get', () => ['a']],
  ['set', () => ['b', new tf.Linear(1, 1)]],
];

function spoiltState(r, module) {
  if (!(module instanceof tf.Module)) return new Map();
  const state = new Map(module.stateDict());
  for (const [name, value] of state) {
    if (r.chance(30)) state.set(name, mutate(r, [value])[0]);
    else if (r.chance(10)) state.delete(name);
  }
  return r.chance(80) ? state : Object.fromEntries(state);
}

function forwardAndBack(r, module, args) {
  if (module instanceof tf.Module && r.chance(15)) module.registerForwardHook(() => anything(r));
  if (module instanceof tf.Module && r.chance(15))
    module.to(r.pick(['float64', 'bfloat16', 'float16']));
  const output = module.forward(...args);
  const first = Array.isArray(output) ? output[0] : output;
  if (first instanceof tf.Tensor && first.requiresGrad && r.chance(60)) first.sum().backward();
  return output;
}

/** A module made, and one of its methods called. */
export function moduleCall(r) {
  const name = r.pick(Object.keys(modules));
  const [make, inputs] = modules[name];
  const makeArgs = r.chance(70) ? make(r) : mutate(r, make(r));
  if (r.chance(55) && inputs(r).length > 0) {
    const args = mutate(r, inputs(r));
    const run = () => forwardAndBack(r, new tf[name](...makeArgs), args);
    return { name: `new ${name}().forward()`, args: [...makeArgs, ...args], run };
  }
  return {
    name: `new ${name}()`,
    args: makeArgs,
    run: () => {
      const module = new tf[name](...makeArgs);
      const [method, argsOf] = r.pick(common);
      return typeof module[method] === 'function'
        ? module[method](...mutate(r, argsOf(r, module)))
        : module;
    },
  };
}

const model = () => tf.makeModel(vocabulary, modelOptions);

/** Functions of lib/nn and lib/optim with good arguments. */
const functions = {
  attention: (r) => [
    vectors(r),
    vectors(r),
    vectors(r),
    { mask: r.pick([undefined, mask(r, 3, 3), mask(r, 2, 1, 3)]), dropout: new tf.Dropout(0) },
  ],
  attentionMaps: (r) => [model(), { src: tokens(r), tgt: tokens(r) }],
  booleanMask: (r) => ['fuzz', mask(r, 2, 3)],
  combineMasks: (r) => [mask(r, 3, 3), mask(r, 2, 1, 3)],
  fromAdditiveMask: (r) => [tf.zeros([2, 3]), ...r.list(0, 1, () => anything(r))],
  paddingMask: (r) => [tokens(r), 0],
  targetMask: (r) => [tokens(r), 0],
  subsequentMask: () => [3, {}],
  clones: (r) => [new tf.Linear(2, 2), r.below(4)],
  crossEntropy: (r) => [
    tensor(r, [4, vocabulary], 'float32'),
    ids(r, [4], vocabulary),
    {
      ignoreIndex: 0,
      reduction: r.pick(['sum', 'mean', 'none']),
      labelSmoothing: r.pick([0, 0.1]),
      smoothingForm: r.pick(['crossEntropy', 'klDivergence']),
    },
  ],
  linearCrossEntropy: (r) => [
    tensor(r, [4, width], 'float32'),
    new tf.Linear(width, vocabulary),
    ids(r, [4], vocabulary),
    {
      ignoreIndex: 0,
      labelSmoothing: 0.1,
      smoothingForm: r.pick(['crossEntropy', 'klDivergence']),
      scale: 1,
    },
  ],
  makeModel: (r) => [
    r.chance(70) ? vocabulary : { src: 5, tgt: 6 },
    {
      ...modelOptions,
      norm: { kind: r.pick(['layer', 'rms']) },
      order: r.pick(['pre', 'post']),
      positions: r.pick(['paired', 'perColumn', 'learned', 'rotary', 'none']),
      activation: r.pick(['relu', 'gelu', 'swiglu']),
      tie: r.pick(['none', 'src-tgt', 'tgt-generator', 'all']),
      bias: r.chance(50),
    },
  ],
  isPackable: () => [model()],
  clipGradNorm: (r) => [
    [withGradient(r), withGradient(r)],
    1,
    { normType: r.pick([2, 1, Infinity]) },
  ],
  noam: () => [{ dModel: width, warmup: 10, factor: 1 }],
  constant: () => [0.1],
  warmup: () => [0.1, 10],
};

function withGradient(r) {
  const parameter = new tf.Parameter(tensor(r, [3, 2], 'float32').detach().clone());
  if (r.chance(80)) parameter.grad = tensor(r, [3, 2], 'float32').detach();
  return parameter;
}

/** One call of a function of lib/nn or lib/optim. */
export function nnFunctionCall(r) {
  const name = r.pick(Object.keys(functions));
  const args = mutate(r, functions[name](r));
  return { name: `${name}()`, args, run: () => tf[name](...args) };
}

/** A model's forward, padded or packed, with a backward pass. */
export function modelCall(r) {
  const made = tf.makeModel(vocabulary, {
    ...modelOptions,
    positions: r.pick(['paired', 'learned', 'rotary']),
    norm: { kind: r.pick(['layer', 'rms']) },
  });
  const packed = r.chance(50);
  const sequences = () => new tf.PackedSequences([2, 1]);
  const args = packed
    ? [
        {
          src: ids(r, [3], vocabulary),
          tgt: ids(r, [3], vocabulary),
          srcSequences: sequences(),
          tgtSequences: sequences(),
        },
      ]
    : [tokens(r), tokens(r), padding(r), causal(r)];
  const given = mutate(r, args);
  return {
    name: packed ? 'Transformer.forwardPacked()' : 'Transformer.forward()',
    args: given,
    run: () => {
      const output = packed ? made.forwardPacked(...given) : made.forward(...given);
      if (output instanceof tf.Tensor) output.sum().backward();
      return output;
    },
  };
}

/** An optimizer made, given odd gradients, stepped, saved and loaded. */
export function optimizerCall(r) {
  const name = r.pick(['SGD', 'Adam', 'AdamW', 'Adafactor']);
  const parameters = r.list(1, 3, () => withGradient(r));
  if (r.chance(30)) {
    const embedding = new tf.Embedding(vocabulary, width);
    embedding.sparseGradient = true;
    embedding
      .forward(tf.tensor([[1, 2, 1]], { dtype: 'int64' }))
      .sum()
      .backward();
    parameters.push(embedding.weight);
  }
  const settings =
    name === 'SGD'
      ? { lr: 0.1, momentum: 0.9, weightDecay: 0.01 }
      : { lr: 0.1, eps: 1e-9, weightDecay: 0 };
  const args = mutate(r, [r.chance(70) ? parameters : [{ params: parameters, lr: 0.2 }], settings]);
  return {
    name: `${name}: new, step, stateDict, loadStateDict`,
    args,
    run: async () => {
      const optimizer = new tf[name](...args);
      try {
        if (r.chance(20)) parameters[0].dispose();
        if (r.chance(20)) parameters[0].grad?.dispose();
        if (r.chance(10)) optimizer.lr = anything(r);
        if (r.chance(30)) await optimizer.stepAsync();
        else optimizer.step();
        const state = optimizer.stateDict();
        if (r.chance(50)) optimizer.loadStateDict(mutate(r, [r.chance(70) ? state : odd(r)])[0]);
        optimizer.step();
      } finally {
        optimizer.dispose();
      }
    },
  };
}
