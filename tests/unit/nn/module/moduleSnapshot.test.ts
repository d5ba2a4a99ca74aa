import { describe, expect, test } from 'vitest';
import {
  Buffer,
  Linear,
  makeModel,
  Module,
  ModuleList,
  noGrad,
  Parameter,
  zeros,
  type Tensor,
} from 'torchformer';
import { snapshotOf } from '../../../../dist/nn/module/moduleSnapshot.js';

class Pair extends Module {
  static override readonly transientNames = ['last'];
  layers = new ModuleList([new Linear(2, 2), new Linear(2, 2)]);
  scale = new Parameter(zeros([2]));
  table = new Buffer(zeros([2]));
  rate = 0.5;
  last: Tensor | null = null;

  override forward(input: Tensor): Tensor {
    return input;
  }
}

describe('the snapshot of a module', () => {
  test('is the same as long as nothing changes', () => {
    const pair = new Pair();
    const snapshot = snapshotOf(pair);
    expect(snapshotOf(pair)).toBe(snapshot);
    expect(snapshot.modules).toEqual(pair.modules());
  });

  test.each<[string, (pair: Pair) => void]>([
    ['training mode of a submodule', ({ layers }) => void layers.at(0).eval()],
    ['a setting', (pair) => (pair.rate = 0.25)],
    ['another parameter', (pair) => (pair.scale = new Parameter(zeros([2])))],
    ['another buffer', (pair) => (pair.table = new Buffer(zeros([2])))],
    ['a new property', (pair) => Object.assign(pair, { offset: 1 })],
    ['a property that is gone', (pair) => void delete (pair as Partial<Pair>).table],
    ['a renamed property', renamed],
    ['a member more', ({ layers }) => void layers.append(new Linear(2, 2))],
    ['another member', ({ layers }) => void layers.set(1, new Linear(2, 2))],
    ['a hook', ({ layers }) => void layers.at(1).registerForwardHook(() => {})],
    ['a forward of its own', (pair) => (pair.forward = (input) => input)],
    ['another class', (pair) => void Object.setPrototypeOf(pair, class extends Pair {}.prototype)],
  ])('is another one after a change of %s', (_, change) => {
    const pair = new Pair();
    const snapshot = snapshotOf(pair);
    change(pair);
    const next = snapshotOf(pair);
    expect(next).not.toBe(snapshot);
    expect(snapshotOf(pair)).toBe(next);
  });

  test('is another one after hooks were removed', () => {
    const pair = new Pair();
    const hook = pair.registerForwardPreHook(() => {});
    const snapshot = snapshotOf(pair);
    hook.remove();
    expect(snapshotOf(pair)).not.toBe(snapshot);
  });

  test('does not see the elements of a parameter, nor what a forward has set', () => {
    const pair = new Pair();
    const snapshot = snapshotOf(pair);
    noGrad(() => pair.scale.fill_(3));
    pair.last = zeros([1]);
    expect(snapshotOf(pair)).toBe(snapshot);
  });

  test('refuses what cannot be a module, like any walk', () => {
    const pair = new Pair();
    snapshotOf(pair);
    (pair as { scale: unknown }).scale = zeros([2]);
    expect(() => snapshotOf(pair)).toThrow('cannot have a Tensor');
  });

  test('of a model lists each of its modules once', () => {
    const model = makeModel(20, { N: 1, dModel: 8, dFf: 8, h: 2, tie: 'all' });
    expect(snapshotOf(model).modules).toEqual(model.modules());
    model.dispose();
  });
});

function renamed(pair: Pair): void {
  const { rate } = pair;
  delete (pair as Partial<Pair>).rate;
  Object.assign(pair, { speed: rate });
}
