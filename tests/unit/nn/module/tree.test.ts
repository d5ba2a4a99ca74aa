import { describe, expect, it } from 'vitest';
import {
  Buffer,
  Embedding,
  Generator,
  LayerNorm,
  LearnedPositions,
  Linear,
  Module,
  ModuleList,
  ones,
  Parameter,
  PositionalEncoding,
  PositionwiseFeedForward,
  RMSNorm,
  seed002,
  Sequential,
  SublayerConnection,
  zeros,
} from 'torchformer';
import type { Tensor } from 'torchformer';

/** `x` and `z` are one module, `y.weight` is `x.weight`: PyTorch's listings are below. */
class Shared extends Module {
  x = new Linear(2, 2);
  y = new Linear(2, 2);
  z = this.x;

  constructor() {
    super();
    this.y.weight = this.x.weight;
  }
}

class Attention extends Module {
  static override readonly stateNames = { outProjection: 'out_proj' };
  outProjection = new Linear(2, 3);
  scale = new Buffer(ones([1]));
}

class Layer extends Module {
  static override readonly stateNames = { selfAttn: 'self_attn' };
  selfAttn = new Attention();
}

class Net extends Module {
  layers = new ModuleList([new Layer(), new Layer()]);
  gain = new Parameter(ones([2]));
}

const names = (pairs: [string, unknown][]) => pairs.map(([name]) => name);

describe('what is shared', () => {
  it('is listed once, under its first name', () => {
    const net = new Shared();
    expect(names(net.namedParameters())).toEqual(['x.weight', 'x.bias', 'y.bias']);
    expect(names(net.namedModules())).toEqual(['', 'x', 'y']);
    expect(names(net.namedChildren())).toEqual(['x', 'y']);
    expect(net.parameters()).toHaveLength(3);
    expect(net.modules()).toEqual([net, net.x, net.y]);
    expect(net.parameterCount()).toBe(8);
  });

  it('is listed under every name with removeDuplicate: false', () => {
    const net = new Shared();
    const all = ['x.weight', 'x.bias', 'y.weight', 'y.bias', 'z.weight', 'z.bias'];
    expect(names(net.namedParameters({ removeDuplicate: false }))).toEqual(all);
    expect(names(net.namedModules({ removeDuplicate: false }))).toEqual(['', 'x', 'y', 'z']);
  });

  it('stands under every name in the state dict, as one tensor', () => {
    const state = new Shared().stateDict();
    expect([...state.keys()]).toEqual([
      'x.weight',
      'x.bias',
      'y.weight',
      'y.bias',
      'z.weight',
      'z.bias',
    ]);
    expect(state.get('y.weight')).toBe(state.get('x.weight'));
    expect(state.get('z.bias')).toBe(state.get('x.bias'));
    expect(state.get('y.bias') === state.get('x.bias')).toBe(false);
  });

  it('gets the gradient of both uses', () => {
    const linear = new Linear(1, 1, { bias: false });
    linear.weight.detach().fill_(3);
    new Sequential(linear, linear).forward(ones([1, 1])).backward();
    expect(linear.weight.grad?.item()).toBe(6);
  });
});

describe('names', () => {
  it('take a prefix', () => {
    const net = new Shared();
    expect(names(net.namedParameters({ prefix: 'q' }))).toEqual([
      'q.x.weight',
      'q.x.bias',
      'q.y.bias',
    ]);
    expect(names(net.namedModules({ prefix: 'q' }))).toEqual(['q', 'q.x', 'q.y']);
    expect([...net.x.stateDict({ prefix: 'model.' }).keys()]).toEqual([
      'model.weight',
      'model.bias',
    ]);
  });

  it('stop at the module itself with recurse: false', () => {
    const net = new Net();
    expect(names(net.namedParameters({ recurse: false }))).toEqual(['gain']);
    expect(net.parameters({ recurse: false })[0]).toBe(net.gain);
    expect(net.parameters({ recurse: false })).toHaveLength(1);
    expect(net.buffers({ recurse: false })).toEqual([]);
    expect(net.buffers()).toHaveLength(2);
  });

  it('refuse options that do not exist', () => {
    const net = new Net();
    expect(() => net.namedParameters({ removeDuplicates: false } as object)).toThrow(
      /namedParameters: unknown option "removeDuplicates".*prefix, recurse, removeDuplicate/,
    );
    expect(() => net.parameterCount({ trainableOnly: true } as object)).toThrow(/trainable/);
  });
});

describe('paths', () => {
  it('lead to modules, parameters and buffers, by state names or properties', () => {
    const net = new Net();
    const attention = net.layers.at(1).selfAttn;
    expect(net.getSubmodule('')).toBe(net);
    expect(net.getSubmodule('layers.1.self_attn')).toBe(attention);
    expect(net.getSubmodule('layers.1.selfAttn')).toBe(attention);
    expect(net.getSubmodule('layers.1.self_attn', Attention).outProjection.outFeatures).toBe(3);
    expect(net.getParameter('gain')).toBe(net.gain);
    expect(net.getParameter('layers.1.self_attn.out_proj.bias')).toBe(attention.outProjection.bias);
    expect(net.getBuffer('layers.1.self_attn.scale')).toBe(attention.scale);
  });

  it('are all those that the listings give', () => {
    const net = new Net();
    for (const [name, module] of net.namedModules()) expect(net.getSubmodule(name)).toBe(module);
    for (const [name, value] of net.namedParameters()) expect(net.getParameter(name)).toBe(value);
    for (const [name, value] of net.namedBuffers()) expect(net.getBuffer(name)).toBe(value);
  });

  it('that lead nowhere say what there is', () => {
    const net = new Net();
    expect(() => net.getSubmodule('layers.2.self_attn')).toThrow(
      'getSubmodule: Net has nothing at "layers.2.self_attn": its ModuleList has no submodule "2", only 0, 1',
    );
    expect(() => net.getParameter('layers.0.self_attn.out_proj.wieght')).toThrow(
      /its Linear has no parameter "wieght", only weight, bias/,
    );
    expect(() => net.getParameter('layers.0')).toThrow(RangeError);
    expect(() => net.getBuffer('')).toThrow(RangeError);
    expect(() => net.getSubmodule('layers.0', Linear)).toThrow(/must be a Linear, got a Layer/);
    expect(() => net.getSubmodule(3 as unknown as string)).toThrow(/path must be a string, got 3/);
  });
});

describe('a module inside itself', () => {
  class Node extends Module {
    child: Module | null = null;
    weight = new Parameter(ones([1]));
  }

  function ring(): Node {
    const [outer, inner] = [new Node(), new Node()];
    outer.child = new ModuleList([inner]);
    inner.child = outer;
    return outer;
  }

  it.each<[string, (node: Node) => unknown]>([
    ['modules', (node) => node.modules()],
    ['parameters', (node) => node.parameters()],
    ['stateDict', (node) => node.stateDict()],
    ['loadStateDict', (node) => node.loadStateDict({ weight: ones([1]) })],
    ['clone', (node) => node.clone()],
    ['apply', (node) => node.apply(() => undefined)],
    ['train', (node) => node.train()],
    ['to', (node) => node.double()],
  ])('is refused by %s, with the path', (_name, use) => {
    expect(() => use(ring())).toThrow(
      /"child\.0\.child" is the Node that contains it \(the root\).*non-enumerable/,
    );
  });

  it('is shown in print', () => {
    expect(String(ring())).toBe(
      [
        'Node(',
        '  (child): ModuleList(',
        '    (0): Node(',
        '      (child): Node([Circular])',
        '    )',
        '  )',
        ')',
      ].join('\n'),
    );
  });

  it('is allowed as a reference upwards that is no enumerable property', () => {
    const [outer, inner] = [new Node(), new Node()];
    outer.child = inner;
    Object.defineProperty(inner, 'parent', { value: outer });
    expect(outer.modules()).toEqual([outer, inner]);
    const copy = outer.clone();
    expect((copy.child as Node & { parent: Node }).parent).toBe(copy);
  });
});

// `linear.weight = tensor` took the weight out of parameters and state dicts without a word.
describe('something else in the place of', () => {
  class Holder extends Module {
    gain = new Parameter(ones([1]));
    count = new Buffer(zeros([1]));
    inner = new Linear(1, 1);
  }
  type Change = (module: Holder & Record<string, unknown>) => void;
  const uses: [string, (module: Module) => unknown][] = [
    ['parameters', (module) => module.parameters()],
    ['namedBuffers', (module) => module.namedBuffers()],
    ['stateDict', (module) => module.stateDict()],
    ['loadStateDict', (module) => module.loadStateDict({ gain: ones([1]) })],
    ['to', (module) => module.to('float64')],
    ['train', (module) => module.train()],
    ['clone', (module) => module.clone()],
  ];

  it.each<[string, Change, RegExp]>([
    [
      'a parameter, a tensor',
      (module) => (module.gain = ones([1]) as never),
      /^Holder: cannot have a Tensor \[1\] of float32 as parameter "gain" \(a Parameter or null expected\).*new Parameter\(tensor\)/,
    ],
    [
      'a parameter, a number',
      (module) => (module.gain = 3 as never),
      /cannot have 3 as parameter "gain"/,
    ],
    [
      'a buffer, a tensor',
      (module) => (module.count = ones([1]) as never),
      /a Tensor \[1\] of float32 as buffer "count" \(a Buffer or null expected\).*new Buffer\(tensor\)/,
    ],
    [
      'a module, a function',
      (module) => (module.inner = ((x: Tensor) => x) as never),
      /the function .* as submodule "inner" \(a Module or null expected\)/,
    ],
    [
      'a module, an object',
      (module) => (module.inner = { forward: 1 } as never),
      /an Object as submodule/,
    ],
  ])('%s, is refused by all that looks through a module', (_what, change, message) => {
    for (const [, use] of uses) {
      const module = new Holder() as Holder & Record<string, unknown>;
      module.parameters();
      const copy = module.clone();
      for (const one of [module, copy]) {
        change(one);
        expect(() => use(one)).toThrow(TypeError);
        expect(() => use(one)).toThrow(message);
      }
    }
  });

  it.each<[string, () => Module, string]>([
    ['Linear', () => new Linear(2, 2), 'weight'],
    ['LayerNorm', () => new LayerNorm(2), 'scale'],
    ['RMSNorm', () => new RMSNorm(2), 'weight'],
    ['Embedding', () => new Embedding(2, 2), 'weight'],
    ['LearnedPositions', () => new LearnedPositions(2), 'pe'],
    ['PositionalEncoding', () => new PositionalEncoding(2), 'pe'],
    ['SublayerConnection', () => new SublayerConnection(2), 'norm'],
    ['Generator', () => new Generator(2, 2), 'proj'],
    ['PositionwiseFeedForward', () => new PositionwiseFeedForward(2, 2), 'w1'],
    ['seed002.MultiHead', () => new seed002.MultiHead(), 'fcQ'],
  ])('a part of a new %s is refused, whatever was asked for before', (_name, make, property) => {
    const module = make() as Module & Record<string, unknown>;
    module[property] = ones([2, 2]);
    expect(() => module.parameters()).toThrow(
      new RegExp(`cannot have a Tensor \\[2, 2\\] of float32 as .*"${property}"`),
    );
  });

  it('may be null, another of its kind or of another kind, or nothing', () => {
    const module = new Holder() as Holder & Record<string, unknown>;
    module.parameters();
    module.gain = null as never;
    module.inner = new Sequential() as never;
    module.count = new Parameter(zeros([1])) as never;
    expect(module.namedParameters().map(([name]) => name)).toEqual(['count']);
    module.gain = new Parameter(ones([1]));
    expect([...module.stateDict().keys()]).toEqual(['gain', 'count']);
    Reflect.deleteProperty(module, 'gain');
    expect(module.parameters()).toHaveLength(1);
    module.gain = ones([1]) as never;
    expect(module.parameters()).toHaveLength(1);
  });
});

describe('modules hidden in plain collections', () => {
  it.each<[string, (linear: Linear) => unknown, RegExp]>([
    ['an array', (linear) => [linear], /is an array with a Linear in it.*ModuleList/],
    ['a set', (linear) => new Set([linear]), /is a Set with a Linear.*ModuleList/],
    ['an object', (linear) => ({ a: linear }), /is an object with a Linear.*ModuleDict/],
    ['a map', (linear) => new Map([['a', linear]]), /is a Map with a Linear.*ModuleDict/],
    ['an array of parameters', ({ weight }) => [weight], /is an array with a Parameter/],
    ['an array of buffers', () => [new Buffer(ones([1]))], /with a Buffer.*its own property/],
    ['an array of arrays', (linear) => [[linear]], /is an array with a Linear in it.*ModuleList/],
    ['an object of objects', (linear) => ({ b: { c: linear } }), /is an object with a Linear/],
    ['a map of arrays', (linear) => new Map([['a', [linear]]]), /is a Map with a Linear/],
    [
      'pairs',
      (linear) => [
        ['a', 1],
        ['b', { linear }],
      ],
      /is an array with a Linear/,
    ],
  ])('are refused in %s, since they would be neither trained nor saved', (_kind, hide, message) => {
    class Hiding extends Module {
      parts = hide(new Linear(1, 1));
    }
    expect(() => new Hiding().parameters()).toThrow(message);
  });

  it('are not looked for in endless or huge collections', () => {
    class Holding extends Module {
      ring: unknown[] = [];
      table = Array.from({ length: 20_000 }, () => [1, 2, 3]);
    }
    const module = new Holding();
    module.ring.push(module.ring, [module.ring]);
    expect(module.parameters()).toEqual([]);
  });
});

describe('requiresGrad_', () => {
  it('changes nothing when one parameter cannot have gradients', () => {
    class Counting extends Module {
      weight = new Parameter(ones([1]), { requiresGrad: false });
      count = new Parameter(zeros([1], { dtype: 'int64' }), { requiresGrad: false });
    }
    const module = new Counting();
    expect(() => module.requiresGrad_()).toThrow(/parameter "count" is int64/);
    expect(module.weight.requiresGrad).toBe(false);
    expect(module.requiresGrad_(false)).toBe(module);
  });

  it('counts frozen and trainable parameters', () => {
    const net = new Sequential(new Linear(2, 3), new Linear(3, 1));
    net.at(0).requiresGrad_(false);
    expect(net.parameterCount({ trainable: true })).toBe(4);
    expect(net.parameterCount({ trainable: false })).toBe(9);
    expect(net.parameterCount()).toBe(13);
  });
});

describe('apply', () => {
  it('visits a module that several share once for each, as PyTorch does', () => {
    const shared = new Linear(1, 1);
    const net = new Sequential(new Sequential(shared), new Sequential(shared));
    let visits = 0;
    net.apply((module) => (visits += module === shared ? 1 : 0));
    expect(visits).toBe(2);
    expect(() => net.apply('init' as never)).toThrow(/visit must be a function/);
  });
});

describe('to', () => {
  it('takes a target, a device, a dtype, both, or a tensor to be like', () => {
    const linear = new Linear(1, 1);
    const dtype = () => linear.weight.dtype;
    expect([linear.to('float64'), dtype()]).toEqual([linear, 'float64']);
    expect([linear.to('cpu', 'bfloat16'), dtype()]).toEqual([linear, 'bfloat16']);
    expect([linear.to(ones([1])), dtype()]).toEqual([linear, 'float32']);
    expect([linear.to({ device: 'cpu', dtype: 'float16' }), dtype()]).toEqual([linear, 'float16']);
    expect([linear.to('cpu'), linear.cpu(), dtype()]).toEqual([linear, linear, 'float16']);
    expect([linear.half().double().float(), dtype()]).toEqual([linear, 'float32']);
  });

  it('refuses what is no device or dtype, and changes nothing', () => {
    const linear = new Linear(1, 1);
    expect(() => linear.to('float' as 'float32')).toThrow(
      /target must be a device \('auto', 'cpu', 'cuda' or/,
    );
    expect(() => linear.to('cpu', 'int64' as 'float32')).toThrow(/dtype must be one of float32/);
    expect(() => linear.to('float32' as 'cpu', 'float64')).toThrow(/two dtypes/);
    expect(() => linear.to({ device: 'cpu' } as never, 'float64')).toThrow(/must be a device/);
    expect(() => linear.to(ones([1], { dtype: 'int64' }))).toThrow(/dtype must be one of/);
    expect(() => linear.to(undefined as never)).toThrow(TypeError);
    expect(linear.weight.dtype).toBe('float32');
  });
});
