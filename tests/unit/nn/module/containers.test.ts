import { describe, expect, it } from 'vitest';
import { Dropout, Linear, ModuleDict, ModuleList, ones, Sequential } from 'torchformer';
import type { Module, TensorModule } from 'torchformer';
import { numbers } from '../../../support/numbers.js';

const linear = () => new Linear(1, 1, { bias: false });
const keys = (module: Module) => [...module.stateDict().keys()];

describe('ModuleList', () => {
  it('is appended to, extended, inserted into, and gives members back', () => {
    const [a, b, c, d, e] = [linear(), linear(), linear(), linear(), linear()];
    const list = new ModuleList([a]).append(c).extend([d]).insert(1, b);
    expect([...list]).toEqual([a, b, c, d]);
    expect(list.insert(-1, e)).toBe(list);
    expect([...list]).toEqual([a, b, c, e, d]);
    expect([list.pop(), list.pop(0), list.length]).toEqual([d, a, 3]);
    expect([...list]).toEqual([b, c, e]);
    expect(keys(list)).toEqual(['0.weight', '1.weight', '2.weight']);
    expect([list.set(-1, a), list[2], list[3]]).toEqual([list, a, undefined]);
    list[0] = d;
    expect(list.parameters()[0]).toBe(d.weight);
  });

  it('extends by itself', () => {
    const list = new ModuleList([linear(), linear()]);
    expect([...list.extend(list)]).toHaveLength(4);
    expect(list.parameters()).toHaveLength(2);
  });

  it('is sliced as an array, into a list of the same modules, counted anew', () => {
    const list = new ModuleList(Array.from({ length: 5 }, linear));
    const part = list.slice(1, -1);
    expect(part).toBeInstanceOf(ModuleList);
    expect([...part]).toEqual([list[1], list[2], list[3]]);
    expect(keys(part)).toEqual(['0.weight', '1.weight', '2.weight']);
    expect(list.slice(9).length).toBe(0);
  });

  it('refuses positions outside and members that are no modules, and stays as it was', () => {
    const list = new ModuleList([linear()]);
    expect(() => list.insert(3, linear())).toThrow('ModuleList: index must be from -1 to 1, got 3');
    expect(() => list.at(0.5)).toThrow(RangeError);
    expect(() => list.set(1, linear())).toThrow(/from -1 to 0, got 1/);
    expect(() => new ModuleList().pop()).toThrow(RangeError);
    expect(() => list.extend([linear(), 3 as unknown as Linear])).toThrow(/must be modules, got 3/);
    expect(() => list.extend(linear() as unknown as Linear[])).toThrow(/other iterable/);
    expect(list.length).toBe(1);
  });

  // They stayed registered, but were in no loop, or in loops and not registered.
  it.each<[string, (list: ModuleList) => unknown, RegExp]>([
    [
      'behind the end',
      (list) => (list[2] = linear()),
      /a member at \[2\], but the length is 2; add/,
    ],
    ['further behind', (list) => (list[7] = linear()), /a member at \[7\].*append\(\)/],
    ['before the start', (list) => (list[-1] = linear()), /a member at \[-1\]/],
    ['out of a hole', (list) => delete list[0], /removed with delete; use pop\(index\)/],
    ['out of the end', (list) => delete list[1], /removed with delete/],
    ['that is no module', (list) => (list[0] = 3 as never), /members must be modules, got 3/],
  ])('refuses a member %s when it is looked through', (_where, spoil, message) => {
    const list = new ModuleList([linear(), linear()]);
    spoil(list);
    for (const use of [() => list.parameters(), () => list.stateDict(), () => list.train()]) {
      expect(use).toThrow(message);
    }
  });

  it('is cut by its length as an array, and never grown', () => {
    const list = new ModuleList([linear(), linear(), linear()]);
    list.length = 1;
    expect([[...list].length, keys(list)]).toEqual([1, ['0.weight']]);
    expect(() => (list.length = 2)).toThrow('ModuleList: length must be an integer from 0 to 1');
    expect(() => (list.length = null as never)).toThrow(TypeError);
    list.length = 0;
    expect([list.length, list.parameters()]).toEqual([0, []]);
    const net = new Sequential({ a: linear(), b: linear() });
    net.length = 1;
    expect(keys(net.append(linear()))).toEqual(['a.weight', '0.weight']);
  });

  it('copies its members when cloned', () => {
    const list = new ModuleList([linear(), linear()]);
    const copy = list.clone().append(linear());
    expect([list.length, copy.length]).toEqual([2, 3]);
    expect(copy.at(0).weight === list.at(0).weight).toBe(false);
  });
});

describe('Sequential', () => {
  it('names its members if they come with names', () => {
    const net = new Sequential({ hidden: new Linear(2, 3), out: new Linear(3, 1) });
    expect(keys(net)).toEqual(['hidden.weight', 'hidden.bias', 'out.weight', 'out.bias']);
    expect(net.forward(ones([4, 2])).shape).toEqual([4, 1]);
    expect(net.getSubmodule('out')).toBe(net[1]);
    const pairs: [string, TensorModule][] = [
      ['b', linear()],
      ['7', linear()],
      ['a', linear()],
    ];
    expect(keys(new Sequential(pairs))).toEqual(['b.weight', '7.weight', 'a.weight']);
    expect(keys(new Sequential(new Map(pairs)))).toEqual(['b.weight', '7.weight', 'a.weight']);
  });

  it('keeps names through all changes, and clones', () => {
    const net = new Sequential({ a: linear(), b: linear() });
    net.append(linear()).insert(0, linear());
    expect(keys(net)).toEqual(['1.weight', 'a.weight', 'b.weight', '0.weight']);
    net.pop(1);
    expect(keys(net.extend([linear()]))).toEqual(['1.weight', 'b.weight', '0.weight', '2.weight']);
    const copy = net.clone();
    net.pop();
    expect(keys(copy)).toEqual(['1.weight', 'b.weight', '0.weight', '2.weight']);
  });

  it('gives slices that keep the names of their members, as in PyTorch', () => {
    const net = new Sequential(...Array.from({ length: 5 }, linear));
    const part = net.slice(1, 3);
    expect(part).toBeInstanceOf(Sequential);
    expect([keys(part), part.length]).toEqual([['1.weight', '2.weight'], 2]);
    expect(part[0]).toBe(net[1]);
    expect(numbers(net.slice(0, 2).forward(ones([1, 1])))).toEqual(
      numbers((net[1] as TensorModule).forward((net[0] as TensorModule).forward(ones([1, 1])))),
    );
    expect(keys(net.slice(0, 2))).toEqual(['0.weight', '1.weight']);
    expect(keys(new Sequential({ a: linear(), b: linear() }).slice(1))).toEqual(['b.weight']);
  });

  it('refuses what is no module or name', () => {
    expect(() => new Sequential([linear()] as never)).toThrow(/new Sequential\(\.\.\.modules\)/);
    expect(() => new Sequential(3 as never)).toThrow(/members must be modules, got 3/);
    expect(() => new Sequential({ 'a.b': linear() })).toThrow(/without a dot/);
    expect(() => new Sequential({ a: 3 as never })).toThrow(/member "a" must be a module, got 3/);
    expect(() => new Sequential([['a', linear()] as const, ['a', linear()]] as never)).toThrow(
      /duplicate name "a"/,
    );
  });
});

describe('ModuleDict', () => {
  it('registers members in the order they came, under any name without a dot', () => {
    const dict = new ModuleDict<Record<string, Linear>>([
      ['keys', linear()],
      ['1', linear()],
      ['forward', linear()],
    ]);
    expect(keys(dict)).toEqual(['keys.weight', '1.weight', 'forward.weight']);
    expect([...dict.keys()]).toEqual(['keys', '1', 'forward']);
    expect(dict.parameters()).toHaveLength(3);
    expect(() => dict.forward()).toThrow(/ModuleDict has no forward/);
  });

  it('gives, replaces and takes out members', () => {
    const [a, b, c] = [linear(), linear(), linear()];
    const dict = new ModuleDict<Record<string, Linear>>({ a, b });
    expect([dict.get('a'), dict.size, dict.has('b'), dict.has('c')]).toEqual([a, 2, true, false]);
    dict.set('a', c);
    expect([...dict]).toEqual([
      ['a', c],
      ['b', b],
    ]);
    expect([...dict.update({ c: a, b: a }).values()]).toEqual([c, a, a]);
    expect([dict.pop('b'), dict.delete('c'), dict.delete('c'), dict.size]).toEqual([
      a,
      true,
      false,
      1,
    ]);
    dict.clear();
    expect(dict.parameters()).toEqual([]);
  });

  it('trains, moves, loads and clones its members', () => {
    const dict = new ModuleDict({ drop: new Dropout(0.5), out: new Linear(2, 1) });
    dict.eval().double();
    expect(dict.get('drop').training).toBe(false);
    expect(dict.get('out').weight.dtype).toBe('float64');
    const copy = dict.clone();
    copy.set('drop', new Dropout(0.1));
    expect(copy.get('out').weight === dict.get('out').weight).toBe(false);
    expect(dict.get('drop').p).toBe(0.5);
    copy.get('out').weight.detach().fill_(4);
    dict.loadStateDict(copy.stateDict());
    expect(numbers(dict.get('out').weight)).toEqual([4, 4]);
    expect(dict.getSubmodule('out')).toBe(dict.get('out'));
  });

  it('refuses what is no module or name, and names the members when one is not there', () => {
    const dict = new ModuleDict<Record<string, Linear>>({ a: linear() });
    expect(() => dict.get('b')).toThrow('ModuleDict: no member "b"; members: a');
    expect(() => new ModuleDict().pop('b')).toThrow('ModuleDict: no member "b"; it is empty');
    expect(() => dict.set('a.b', linear())).toThrow(/without a dot, got the string "a.b"/);
    expect(() => dict.set('', linear())).toThrow(TypeError);
    expect(() => dict.set('b', 3 as never)).toThrow(/member "b" must be a module, got 3/);
    expect(() => dict.update({ b: linear(), c: null as never })).toThrow(/member "c"/);
    expect(() => new ModuleDict(3 as never)).toThrow(/an object or pairs, got 3/);
    expect(dict.size).toBe(1);
  });
});
