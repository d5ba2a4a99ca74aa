import { describe, expect, it } from 'vitest';
import {
  Adafactor,
  Adam,
  AdamW,
  applyLora,
  attention,
  attentionMaps,
  booleanMask,
  Buffer,
  clipGradNorm,
  clones,
  combineMasks,
  constant,
  cosine,
  crossEntropy,
  CrossEntropyLoss,
  decayGroups,
  Decoder,
  DecoderLayer,
  Dropout,
  Embedding,
  Encoder,
  EncoderLayer,
  freeze,
  fromAdditiveMask,
  Generator,
  init,
  inverseSquareRoot,
  isPackable,
  LayerNorm,
  LearnedPositions,
  Linear,
  linearCrossEntropy,
  linearDecay,
  LoraLinear,
  loraStateDict,
  makeModel,
  mergeLora,
  ModuleDict,
  ModuleList,
  MultiHeadedAttention,
  noam,
  ones,
  paddingMask,
  Parameter,
  PositionalEncoding,
  PositionwiseFeedForward,
  RMSNorm,
  RotaryPositions,
  seed000,
  seed002,
  Sequential,
  SGD,
  SublayerConnection,
  subsequentMask,
  targetMask,
  tensor,
  TorchError,
  Transformer,
  TransformerEmbedding,
  warmup,
  unfreeze,
  zeros,
} from 'torchformer';
import * as nn from '../../../dist/nn/index.js';
import * as optim from '../../../dist/optim/index.js';

/** What JavaScript itself says, without a name of ours: to read, call or convert what is none. */
const raw =
  /^Cannot (read|convert|mix|set|destructure|access|use)|is not (a function|iterable|a constructor|callable)|^Invalid|\[object \w+\]/;

/** What comes where something else belongs. */
const odd: [string, unknown][] = [
  ['undefined', undefined],
  ['null', null],
  ['3', 3],
  ['-1', -1],
  ['0.5', 0.5],
  ['NaN', NaN],
  ['true', true],
  ['a string', 'x'],
  ['a bigint', 10n],
  ['a symbol', Symbol('s')],
  ['{}', {}],
  ['[]', []],
  ['[null]', [null]],
  ['a Map', new Map([['a', 1]])],
  ['a function', () => 1],
  ['a Tensor', ones([1])],
  ['a Module', new Linear(1, 1)],
  ['a Promise', Promise.resolve(1)],
];

type Call = (...values: unknown[]) => unknown;

/** Puts every odd value at every place, one at a time; lists the errors of JavaScript's own. */
function rawErrors(good: readonly unknown[], call: Call): string[] {
  const found: string[] = [];
  for (let place = 0; place < good.length; place++) {
    for (const [name, value] of odd) {
      try {
        call(...good.with(place, value));
      } catch (error) {
        const { message } = error as Error;
        const kinds = [TypeError, RangeError, TorchError];
        const ours = kinds.some((kind) => error instanceof kind) && !raw.test(message);
        if (!ours) found.push(`argument ${place}, ${name}: ${String(error)}`);
      }
    }
  }
  return found;
}

const vectors = () => ones([1, 2, 4]);
const ids = () => tensor([[1n, 2n]]);
const model = () => makeModel(9, { N: 1, dModel: 4, dFf: 4, h: 2 });
const withLora = () => {
  const updated = model();
  applyLora(updated);
  return updated;
};
const attn = () => new MultiHeadedAttention(2, 4);
const feedForward = () => new PositionwiseFeedForward(4, 4);
const encoderLayer = () => new EncoderLayer(4, attn(), feedForward());
const decoderLayer = () => new DecoderLayer(4, attn(), attn(), feedForward());

const functions: [string, Call, unknown[]][] = [
  [
    'applyLora',
    // Each call needs a model that has none.
    (value, options) =>
      applyLora(value instanceof Transformer ? model() : (value as never), options as never),
    [model(), {}],
  ],
  ['attention', attention as Call, [vectors(), vectors(), vectors(), {}]],
  ['attentionMaps', attentionMaps as Call, [model(), { src: ids(), tgt: ids() }]],
  ['booleanMask', booleanMask as Call, ['test', ones([1, 1])]],
  ['clipGradNorm', clipGradNorm as Call, [[ones([1])], 1, {}]],
  ['clones', clones as Call, [new Linear(1, 1), 1]],
  ['combineMasks', combineMasks as Call, [ones([1, 1]), ones([1, 1])]],
  ['constant', constant as Call, [1]],
  ['cosine', cosine as Call, [{ learningRate: 1, steps: 2 }]],
  ['decayGroups', decayGroups as Call, [model(), { weightDecay: 0.1 }]],
  ['crossEntropy', crossEntropy as Call, [ones([2, 3]), tensor([0n, 1n]), {}]],
  ['freeze', freeze as Call, [model(), '*']],
  ['fromAdditiveMask', fromAdditiveMask as Call, [zeros([1, 1])]],
  ['init.constant_', init.constant_ as Call, [ones([2, 2]), 1]],
  ['init.kaimingUniform_', init.kaimingUniform_ as Call, [ones([2, 2]), 1]],
  ['init.normal_', init.normal_ as Call, [ones([2, 2]), 0, 1]],
  ['init.uniform_', init.uniform_ as Call, [ones([2, 2]), 0, 1]],
  ['init.xavierUniform_', init.xavierUniform_ as Call, [ones([2, 2]), 1]],
  ['inverseSquareRoot', inverseSquareRoot as Call, [{ learningRate: 1 }]],
  ['isPackable', isPackable as Call, [model()]],
  [
    'linearCrossEntropy',
    linearCrossEntropy as Call,
    [ones([2, 3]), new Linear(3, 4), tensor([0n, 1n]), {}],
  ],
  ['linearDecay', linearDecay as Call, [{ learningRate: 1, steps: 2 }]],
  ['loraStateDict', loraStateDict as Call, [withLora()]],
  ['makeModel', makeModel as Call, [9, { N: 1, dModel: 4, dFf: 4, h: 2 }]],
  ['mergeLora', mergeLora as Call, [withLora()]],
  ['noam', noam as Call, [{ dModel: 4 }]],
  ['paddingMask', paddingMask as Call, [ids(), 0]],
  ['subsequentMask', subsequentMask as Call, [2, {}]],
  ['targetMask', targetMask as Call, [ids(), 0]],
  ['warmup', warmup as Call, [1, 2]],
  ['unfreeze', unfreeze as Call, [model(), '*']],
  ['seed000.attention', seed000.attention as Call, [vectors(), vectors(), vectors(), {}]],
  [
    'seed002.attention',
    seed002.attention as Call,
    [ones([1, 1, 2, 4]), ones([1, 1, 2, 4]), ones([1, 1, 2, 4]), null, {}],
  ],
];

it.each(functions)('%s names the argument that is wrong', (_name, call, good) => {
  expect(() => call(...good)).not.toThrow();
  expect(rawErrors(good, call)).toEqual([]);
});

type Class = new (...values: never[]) => object;

/** A class, arguments of its constructor, arguments of its forward. */
const classes: [string, Class, unknown[], unknown[]?][] = [
  ['Adafactor', Adafactor, [[new Parameter(ones([1]))], { lr: 1 }]],
  ['Adam', Adam, [[new Parameter(ones([1]))], { lr: 1 }]],
  ['AdamW', AdamW, [[new Parameter(ones([1]))], { lr: 1 }]],
  ['Buffer', Buffer, [ones([1]), {}]],
  ['CrossEntropyLoss', CrossEntropyLoss, [{}], [ones([2, 3]), tensor([0n, 1n])]],
  ['Decoder', Decoder, [decoderLayer(), 1, {}], [vectors(), vectors(), null, null]],
  [
    'DecoderLayer',
    DecoderLayer,
    [4, attn(), attn(), feedForward(), {}],
    [vectors(), vectors(), null, null],
  ],
  ['Dropout', Dropout, [0.1], [vectors()]],
  ['Embedding', Embedding, [3, 4, {}], [ids()]],
  ['Encoder', Encoder, [encoderLayer(), 1, {}], [vectors(), null]],
  ['EncoderLayer', EncoderLayer, [4, attn(), feedForward(), {}], [vectors(), null]],
  ['Generator', Generator, [4, 2, {}], [vectors()]],
  ['LayerNorm', LayerNorm, [4, {}], [vectors()]],
  ['LearnedPositions', LearnedPositions, [4, {}], [vectors()]],
  ['Linear', Linear, [4, 2, {}], [vectors()]],
  ['LoraLinear', LoraLinear, [4, 2, {}], [vectors()]],
  ['ModuleDict', ModuleDict, [{ a: new Linear(1, 1) }]],
  ['ModuleList', ModuleList, [[new Linear(1, 1)]]],
  [
    'MultiHeadedAttention',
    MultiHeadedAttention,
    [2, 4, {}],
    [vectors(), vectors(), vectors(), null],
  ],
  ['Parameter', Parameter, [ones([1]), {}]],
  ['PositionalEncoding', PositionalEncoding, [4, {}], [vectors()]],
  ['PositionwiseFeedForward', PositionwiseFeedForward, [4, 4, {}], [vectors()]],
  ['RMSNorm', RMSNorm, [4, {}], [vectors()]],
  ['RotaryPositions', RotaryPositions, [4, {}], [ones([1, 1, 2, 4])]],
  ['Sequential', Sequential, [new Linear(4, 1)], [vectors()]],
  ['SGD', SGD, [[new Parameter(ones([1]))], { lr: 1 }]],
  ['SublayerConnection', SublayerConnection, [4, {}], [vectors(), (x: unknown) => x]],
  ['TransformerEmbedding', TransformerEmbedding, [3, 4], [ids()]],
  ['seed000.FeedForward', seed000.FeedForward, [4, 4, {}], [vectors()]],
  ['seed000.LayerNorm', seed000.LayerNorm, [4, {}], [vectors()]],
  [
    'seed000.MultiHeadAttention',
    seed000.MultiHeadAttention,
    [4, 2, {}],
    [vectors(), vectors(), vectors(), null],
  ],
  [
    'seed000.SubLayerConnection',
    seed000.SubLayerConnection,
    [4, {}],
    [vectors(), (x: unknown) => x],
  ],
  ['seed002.FullyConnectedOutput', seed002.FullyConnectedOutput, [{ dModel: 4 }], [vectors()]],
  [
    'seed002.MultiHead',
    seed002.MultiHead,
    [{ dModel: 4, h: 2 }],
    [vectors(), vectors(), vectors(), null],
  ],
  ['seed002.PositionEmbedding', seed002.PositionEmbedding, [{ dModel: 4 }], [ids()]],
];

describe.each(classes)('%s', (_name, Class, good, inputs) => {
  const make: Call = (...values) => new (Class as new (...values: unknown[]) => object)(...values);

  it('names the argument of its constructor that is wrong', () => {
    expect(() => make(...good)).not.toThrow();
    expect(rawErrors(good, make)).toEqual([]);
  });

  if (inputs === undefined) return;

  it('names the argument of forward that is wrong', () => {
    const module = make(...good) as { forward: Call };
    const forward: Call = (...values) => module.forward(...values);
    expect(() => forward(...inputs)).not.toThrow();
    expect(rawErrors(inputs, forward)).toEqual([]);
  });
});

it('every class and function of modules and optimizers is in the tables', () => {
  // Others' doors, or without arguments.
  const elsewhere = ['clone', 'Module', 'StateDictError', 'Transformer', 'Optimizer', 'PackedMask'];
  const tested = new Set([...functions, ...classes].map(([name]) => name).concat(elsewhere));
  tested.add('PackedSequences').add('seed000.clone');
  const names = [
    ...callables(nn),
    ...callables(optim),
    ...callables(init).map((name) => `init.${name}`),
    ...callables(seed000).map((name) => `seed000.${name}`),
    ...callables(seed002).map((name) => `seed002.${name}`),
  ];
  expect(names.filter((name) => !tested.has(name))).toEqual([]);
});

describe('methods', () => {
  const methods: [string, () => object, (string | [string, ...unknown[]])[]][] = [
    [
      'Module',
      () => new Linear(1, 1),
      [
        'apply',
        'buffers',
        'cuda',
        'getBuffer',
        'getParameter',
        'getSubmodule',
        ['loadStateDict', {}, {}],
        'namedBuffers',
        'namedModules',
        'namedParameters',
        'parameterCount',
        'parameters',
        ['registerBackwardHook', () => undefined, {}],
        ['registerForwardHook', () => undefined, {}],
        ['registerForwardPreHook', () => undefined, {}],
        'requiresGrad_',
        'stateDict',
        ['to', 'cpu', 'float32'],
        'train',
      ],
    ],
    [
      'ModuleList',
      () => new ModuleList([new Linear(1, 1)]),
      [
        'append',
        'at',
        'extend',
        ['insert', 0, new Linear(1, 1)],
        'pop',
        'push',
        ['set', 0, 0],
        ['slice', 0, 1],
      ],
    ],
    [
      'Sequential',
      () => new Sequential({ a: new Linear(1, 1) }),
      [
        'append',
        'at',
        'extend',
        ['insert', 0, new Linear(1, 1)],
        'pop',
        'push',
        ['set', 0, 0],
        ['slice', 0, 1],
      ],
    ],
    [
      'ModuleDict',
      () => new ModuleDict<Record<string, Linear>>({ a: new Linear(1, 1) }),
      ['delete', 'get', 'has', 'pop', ['set', 'a', new Linear(1, 1)], 'update'],
    ],
    [
      'Transformer',
      model,
      [
        ['decode', vectors(), null, ids(), null],
        ['encode', ids(), null],
        ['forward', ids(), ids(), null, null],
        'growPositions',
      ],
    ],
    ['Generator', () => new Generator(4, 2), ['logits']],
    ['Adam', () => new Adam([new Parameter(ones([1]))], { lr: 1 }), ['loadStateDict']],
    ['SGD', () => new SGD([new Parameter(ones([1]))], { lr: 1 }), ['loadStateDict']],
  ];
  const table = methods.flatMap(([name, make, list]) =>
    list.map((one) => {
      const [method, ...good] = typeof one === 'string' ? [one, undefined] : one;
      return [`${name}.${method}`, make, method, good] as const;
    }),
  );

  it.each(table)('%s names the argument that is wrong', (_name, make, method, good) => {
    const call: Call = (...values) => (make() as Record<string, Call>)[method]!(...values);
    expect(rawErrors(good, call)).toEqual([]);
  });
});

describe('in place of options', () => {
  // It was `unknown option "lifetime"`, a private field of tensors.
  it('a tensor, as the seeds pass masks, is told the name', () => {
    for (const call of [attention, seed000.attention]) {
      expect(() => call(vectors(), vectors(), vectors(), ones([2, 2]) as never)).toThrow(
        /^attention: options must be an object such as \{ mask, .*\}, got a Tensor \[2, 2\] of float32$/,
      );
    }
    expect(() => new Linear(1, 1, new Linear(1, 1) as never)).toThrow(
      'Linear: options must be an object such as { bias }, got a Linear',
    );
  });

  it('a number or boolean, as the seeds and PyTorch pass settings, is told the names', () => {
    expect(() => new seed000.MultiHeadAttention(8, 2, 0.3 as never)).toThrow(
      'MultiHeadAttention: options must be an object, got 0.3; pass { dropout: 0.3 }; ' +
        'valid options: dropout, emptyRows, keepAttention',
    );
    expect(() => new Linear(1, 1, false as never)).toThrow(/pass \{ bias: false \}/);
    expect(() => new LayerNorm(4, 1e-5 as never)).toThrow(
      /got 0\.00001; valid options: eps, epsPlace/,
    );
    expect(() => attention(vectors(), vectors(), vectors(), null as never)).toThrow(
      /got null; valid options: additiveMask, .*mask/,
    );
  });

  it('an object of a class is taken when its properties are options', () => {
    class Settings {
      bias = false;
    }
    expect(new Linear(1, 1, new Settings()).bias).toBeNull();
  });
});

describe('a sublayer', () => {
  it('must be a module or a function, and give a tensor', () => {
    const connection = new SublayerConnection(4);
    expect(() => connection.forward(vectors(), 3 as never)).toThrow(
      'SublayerConnection: sublayer must be a module or a function, got 3',
    );
    expect(() => connection.forward(vectors(), (() => 3) as never)).toThrow(
      /input must be a Tensor, got 3/,
    );
    expect(() => connection.forward(3 as never, (x) => x)).toThrow(
      /SublayerConnection: input must be a Tensor, got 3/,
    );
  });

  it('of a layer must be a module, which registers its parameters', () => {
    expect(() => new EncoderLayer(4, attn(), ((x: unknown) => x) as never)).toThrow(
      /EncoderLayer: feedForward must be a Module, got the function/,
    );
    expect(() => new Encoder(new Linear(1, 1) as never, 1)).toThrow(
      'Encoder: layer must be an EncoderLayer, got a Linear',
    );
  });
});

it('clipGradNorm takes a single tensor, which is an iterable of its rows too', () => {
  const weight = tensor([3, 4], { requiresGrad: true });
  weight.mul(weight).sum().backward();
  expect(clipGradNorm(weight, 1)).toBeCloseTo(10);
  expect(() => clipGradNorm(null as never, 1)).toThrow(
    'clipGradNorm: parameters must be Tensors, such as module.parameters(), got null',
  );
});

/** Names of the functions and classes of a namespace. */
function callables(namespace: object): string[] {
  return Object.entries(namespace).flatMap(([name, value]) =>
    typeof value === 'function' ? [name] : [],
  );
}
