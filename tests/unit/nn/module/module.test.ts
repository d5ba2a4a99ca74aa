import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import * as torchformer from 'torchformer';
import {
  Buffer,
  clones,
  Linear,
  memory,
  Module,
  ModuleList,
  ones,
  Parameter,
  Sequential,
  tensor,
  tidy,
  zeros,
} from 'torchformer';
import type { Tensor } from 'torchformer';
import { numbers } from '../../../support/numbers.js';

class Block extends Module {
  static override readonly stateNames: Readonly<Record<string, string>> = { inner: 'in_ner' };
  gain = new Parameter(ones([2]));
  count = new Buffer(tensor([3], { dtype: 'int64' }));
  scratch = new Buffer(zeros([2]), { persistent: false });
  inner = new Linear(2, 3, { bias: false });
  note: Tensor | null = null;

  override forward(x: Tensor): Tensor {
    return this.inner.forward(x.mul(this.gain));
  }
}

class Outer extends Block {
  static override readonly stateNames: Readonly<Record<string, string>> = { list: 'li_st' };
  list = new ModuleList([new Linear(1, 1), new Linear(1, 1)]);
}

describe('registration', () => {
  it('finds parameters, buffers and modules that are assigned to properties', () => {
    const block = new Block();
    expect(block.namedParameters().map(([name]) => name)).toEqual(['gain', 'in_ner.weight']);
    expect(block.namedBuffers().map(([name]) => name)).toEqual(['count', 'scratch']);
    expect(block.namedChildren().map(([name]) => name)).toEqual(['in_ner']);
    block.note = ones([1]);
    expect(block.parameters()).toHaveLength(2);
  });

  it('merges stateNames along the class chain', () => {
    expect([...new Outer().stateDict().keys()]).toEqual([
      'gain',
      'count',
      'in_ner.weight',
      'li_st.0.weight',
      'li_st.0.bias',
      'li_st.1.weight',
      'li_st.1.bias',
    ]);
  });

  it('sees what is assigned, replaced and removed later', () => {
    const block = new Block() as Block & { extra?: Parameter };
    block.extra = new Parameter(ones([1]));
    block.inner = new Linear(2, 3);
    expect(block.namedParameters().map(([name]) => name)).toEqual([
      'gain',
      'extra',
      'in_ner.weight',
      'in_ner.bias',
    ]);
    delete block.extra;
    expect(block.parameters()).toHaveLength(3);
  });

  it('lists shared parameters once, and under each name in the state dict', () => {
    const tied = new Sequential(new Linear(2, 2), new Linear(2, 2));
    tied.at(1).forward(tied.at(0).forward(ones([1, 2])));
    (tied.at(1) as Linear).weight = (tied.at(0) as Linear).weight;
    expect(tied.namedParameters().map(([name]) => name)).toEqual(['0.weight', '0.bias', '1.bias']);
    expect([...tied.stateDict().keys()]).toEqual(['0.weight', '0.bias', '1.weight', '1.bias']);
    expect(tied.parameterCount()).toBe(8);
  });

  it('allows one module in two places', () => {
    const shared = new Linear(2, 2);
    const net = new Sequential(shared, shared);
    expect(net.children()).toEqual([shared]);
    expect(net.parameters()).toHaveLength(2);
    expect(net.stateDict().size).toBe(4);
  });

  it('refuses an array of modules, which would be neither trained nor saved', () => {
    class Hidden extends Module {
      layers = [new Linear(1, 1)];
    }
    expect(() => new Hidden().parameters()).toThrow(/"layers" is an array .* ModuleList/);
  });

  it('refuses two properties with one state name', () => {
    class Twice extends Module {
      static override readonly stateNames = { b: 'a' };
      a = new Parameter(ones([1]));
      b = new Parameter(ones([1]));
    }
    expect(() => new Twice().stateDict()).toThrow(/"a" and "b" share the state name "a"/);
  });

  it('refuses integers as a parameter with gradients', () => {
    expect(() => new Parameter(tensor([1], { dtype: 'int64' }))).toThrow(/floating.*int64/);
    expect(() => new Parameter([1] as unknown as Tensor)).toThrow(TypeError);
  });
});

describe.each([true, false])('a subclass compiled with useDefineForClassFields %s', (define) => {
  const source = `
    class Base extends Module {
      static stateNames = { first: 'fir_st' };
      first = new Linear(2, 2);
      factor: Parameter;
      constructor() {
        super();
        this.factor = new Parameter(ones([2]));
      }
    }
    class Net extends Base {
      static stateNames = { second: 'sec_ond' };
      second: Linear = new Linear(2, 1);
      optional?: Linear;
      forward(x: Tensor): Tensor {
        return this.second.forward(this.first.forward(x).mul(this.factor));
      }
    }
    return Net;`;
  const { outputText } = ts.transpileModule(source, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, useDefineForClassFields: define },
  });
  const { Module, Linear, Parameter, ones } = torchformer;
  const make = new Function('Module', 'Linear', 'Parameter', 'ones', outputText) as (
    ...names: unknown[]
  ) => new () => Module & { forward(x: Tensor): Tensor; second: Linear };
  const create = () => new (make(Module, Linear, Parameter, ones))();

  it('registers, trains, clones and loads alike', () => {
    expect(/\n\s+second = new Linear/.test(outputText)).toBe(define);
    const net = create();
    expect([...net.stateDict().keys()].sort()).toEqual([
      'factor',
      'fir_st.bias',
      'fir_st.weight',
      'sec_ond.bias',
      'sec_ond.weight',
    ]);
    net
      .forward(ones([3, 2]))
      .sum()
      .backward();
    expect(net.parameters().every((parameter) => parameter.grad !== null)).toBe(true);
    const copy = net.clone();
    expect(numbers(copy.forward(ones([1, 2])))).toEqual(numbers(net.forward(ones([1, 2]))));
    expect(copy.second.weight === net.second.weight).toBe(false);
    const other = create();
    other.loadStateDict(net.stateDict());
    expect(numbers(other.second.weight)).toEqual(numbers(net.second.weight));
  });
});

describe('modes and gradients', () => {
  it('train and eval reach every submodule', () => {
    const outer = new Outer();
    outer.eval();
    expect(outer.modules().map((module) => module.training)).toEqual(Array(5).fill(false));
    outer.train();
    expect(outer.modules().every((module) => module.training)).toBe(true);
    expect(() => outer.train('yes' as unknown as boolean)).toThrow(TypeError);
  });

  it('zeroGrad drops all gradients', () => {
    const block = new Block();
    block
      .forward(ones([1, 2]))
      .sum()
      .backward();
    expect(block.gain.grad).not.toBeNull();
    block.zeroGrad();
    expect(block.parameters().map((parameter) => parameter.grad)).toEqual([null, null]);
  });

  it('requiresGrad_ freezes, parameterCount can leave frozen ones out', () => {
    const block = new Block();
    expect(block.parameterCount()).toBe(8);
    block.inner.requiresGrad_(false);
    expect(block.parameterCount({ trainable: true })).toBe(2);
  });

  it('apply visits children before their parents', () => {
    const order: string[] = [];
    new Block().apply((module) => order.push(module.constructor.name));
    expect(order).toEqual(['Linear', 'Block']);
  });

  it('a module without forward says so', () => {
    expect(() => new ModuleList().forward()).toThrow(/ModuleList has no forward/);
  });
});

describe('to', () => {
  it('keeps the Parameter objects and moves gradients along', () => {
    const block = new Block();
    const { gain } = block;
    block
      .forward(ones([1, 2]))
      .sum()
      .backward();
    const before = numbers(gain.grad as Tensor);
    block.to({ dtype: 'float64' });
    expect(block.gain).toBe(gain);
    expect(gain.dtype).toBe('float64');
    expect(gain.requiresGrad && gain.isLeaf).toBe(true);
    expect(gain.grad?.dtype).toBe('float64');
    expect(numbers(gain.grad as Tensor)).toEqual(before);
    block
      .forward(ones([1, 2], { dtype: 'float64' }))
      .sum()
      .backward();
    numbers(gain.grad as Tensor).forEach((value, index) => {
      expect(value).toBeCloseTo(2 * (before[index] as number), 6);
    });
  });

  it('leaves integer buffers their dtype', () => {
    const block = new Block().half();
    expect([block.count.dtype, block.scratch.dtype]).toEqual(['int64', 'float16']);
  });

  it('keeps shared parameters shared', () => {
    const tied = new Sequential(new Linear(2, 2), new Linear(2, 2));
    (tied.at(1) as Linear).weight = (tied.at(0) as Linear).weight;
    tied.double();
    expect((tied.at(1) as Linear).weight).toBe((tied.at(0) as Linear).weight);
    expect(tied.parameters().map(({ dtype }) => dtype)).toEqual(Array(3).fill('float64'));
  });

  it('changes nothing when it fails', () => {
    const block = new Block();
    expect(() => block.to({ dtype: 'int64' })).toThrow(/float32.*"int64"/);
    expect(() => block.to({ device: 'tpu' as 'cpu' })).toThrow(TypeError);
    for (const target of ['float3', 'int64', '', undefined, null, 3]) {
      expect(() => block.to(target as 'cpu')).toThrow(TypeError);
      expect(() => block.to(target as 'cpu')).toThrow(
        /^Module\.to: target must be a device \('auto', 'cpu', 'cuda' or .*a floating dtype \('float32', .*, got/,
      );
    }
    expect(() => block.to({ device: null as never })).toThrow(/device must be 'auto'.* got null/);
    expect(() => block.to('cuda:x' as 'cuda')).toThrow(/device must be 'auto'.*"cuda:x"/);
    expect(() => block.to({ devise: 'cpu' } as object)).toThrow(/devise.*device, dtype/);
    expect(block.parameters().map(({ dtype }) => dtype)).toEqual(['float32', 'float32']);
  });

  it('leaves no tensors behind', () => {
    const block = new Block();
    const before = memory().tensors;
    block.double();
    block.float();
    expect(memory().tensors).toBe(before);
  });
});

describe('clone', () => {
  it('shares no memory, and carries over no gradient, graph or stored result', () => {
    const block = new Block();
    block.note = block.forward(ones([1, 2]));
    block.note.sum().backward();
    const copy = block.clone();
    copy.gain.detach().fill_(9);
    copy.count.fill_(9);
    expect(numbers(block.gain)).toEqual([1, 1]);
    expect(numbers(block.count)).toEqual([3]);
    expect(copy.note).toBeNull();
    expect(copy.gain.grad).toBeNull();
    expect(copy).toBeInstanceOf(Block);
    expect(copy.scratch.persistent).toBe(false);
  });

  it('works after a forward whose stored results are gone, not after dispose', () => {
    const block = new Block();
    tidy(() => {
      block.note = ones([1]).add(1);
    });
    expect(block.clone().note).toBeNull();
    block.dispose();
    expect(() => block.clone()).toThrow(/disposed/);
  });

  it('keeps ties inside the copy', () => {
    const tied = new Sequential(new Linear(2, 2), new Linear(2, 2));
    (tied.at(1) as Linear).weight = (tied.at(0) as Linear).weight;
    const copy = tied.clone();
    expect((copy.at(1) as Linear).weight).toBe((copy.at(0) as Linear).weight);
    expect((copy.at(0) as Linear).weight === (tied.at(0) as Linear).weight).toBe(false);
  });

  it('keeps ties of whole modules, and of parameters over one memory', () => {
    const shared = new Linear(2, 2);
    const net = new Sequential(shared, shared, new Linear(2, 2));
    (net.at(2) as Linear).weight = new Parameter(shared.weight);
    const copy = net.clone();
    const [first, second, third] = [...copy] as [Linear, Linear, Linear];
    expect(second).toBe(first);
    first.weight.detach().fill_(7);
    expect(numbers(third.weight)).toEqual([7, 7, 7, 7]);
    expect(third.weight === first.weight).toBe(false);
    expect(numbers(shared.weight)).not.toContain(7);
  });

  it('shares no parameter, buffer or memory between a model and any number of clones', () => {
    const block = new Block();
    const copies = clones(block, 3);
    copies.at(0).gain.detach().add_(1);
    expect(copies.modules()).toHaveLength(7);
    expect([...copies].map(({ gain }) => numbers(gain))).toEqual([
      [2, 2],
      [1, 1],
      [1, 1],
    ]);
    expect(numbers(block.gain)).toEqual([1, 1]);
    const states = [block, ...copies].map((module) => module.stateDict());
    expect(new Set(states.flatMap((state) => [...state.values()])).size).toBe(12);
  });

  it('copies plain objects, lists and constant tensors', () => {
    class Settings extends Module {
      config = { sizes: [1, 2], names: new Map([['a', 1]]) };
      constant = tensor([1, 2]);
    }
    const original = new Settings();
    const copy = original.clone();
    original.config.sizes.push(3);
    original.constant.fill_(0);
    expect(copy.config).toEqual({ sizes: [1, 2], names: new Map([['a', 1]]) });
    expect(numbers(copy.constant)).toEqual([1, 2]);
  });

  it('keeps modes and frozen parameters', () => {
    const block = new Block().eval();
    block.gain.requiresGrad = false;
    const copy = block.clone();
    expect(copy.training).toBe(false);
    expect(copy.parameters().map(({ requiresGrad }) => requiresGrad)).toEqual([false, true]);
  });
});

describe('life of parameters', () => {
  it('outlives the scope in which the module was made', () => {
    const block = tidy(() => new Block());
    let hidden!: Block;
    tidy(() => {
      hidden = new Block().clone();
    });
    expect(block.gain.isDisposed).toBe(false);
    expect(numbers(hidden.gain)).toEqual([1, 1]);
  });

  it('dispose frees all of them', () => {
    const before = memory().tensors;
    const block = tidy(() => new Block());
    expect(memory().tensors).toBe(before + 4);
    block.dispose();
    expect(memory().tensors).toBe(before);
  });
});

describe('printing', () => {
  it("gives PyTorch's tree, with equal neighbours folded", () => {
    expect(String(new Outer())).toBe(
      [
        'Outer(',
        '  (in_ner): Linear(in_features=2, out_features=3, bias=False)',
        '  (li_st): ModuleList(',
        '    (0-1): 2 x Linear(in_features=1, out_features=1, bias=True)',
        '  )',
        ')',
      ].join('\n'),
    );
  });

  it('marks parameters', () => {
    expect(String(new Parameter(ones([2])))).toMatch(
      /^Parameter containing:\ntensor\(\[1\., 1\.\]/,
    );
  });
});

describe('containers', () => {
  it('ModuleList is indexed from both ends, iterated and appended to', () => {
    const [a, b, c] = [new Linear(1, 1), new Linear(1, 1), new Linear(1, 1)] as const;
    const list = new ModuleList([a, b]).push(c);
    expect([list.length, list[0], list.at(-1)]).toEqual([3, a, c]);
    expect([...list]).toEqual([a, b, c]);
    expect(() => list.at(3)).toThrow(/from -3 to 2, got 3/);
    expect(() => list.push({} as Linear)).toThrow(/members must be modules/);
  });

  it('ModuleList orders more than ten members by number', () => {
    const list = new ModuleList(
      Array.from({ length: 12 }, () => new Linear(1, 1, { bias: false })),
    );
    expect(list.namedParameters().map(([name]) => name)).toEqual(
      Array.from({ length: 12 }, (_, index) => `${index}.weight`),
    );
  });

  it('Sequential feeds each result to the next', () => {
    const net = new Sequential(new Linear(2, 3), new Linear(3, 1));
    const [first, second] = [net.at(0) as Linear, net.at(1) as Linear];
    const x = ones([4, 2]);
    expect(numbers(net.forward(x))).toEqual(numbers(second.forward(first.forward(x))));
    expect(new Sequential().forward(x)).toBe(x);
  });
});
