import { describe, expect, it } from 'vitest';
import {
  callTensor,
  empty,
  full,
  getNumThreads,
  getRngState,
  manualSeed,
  rand,
  randint,
  randLike,
  randn,
  randnLike,
  randperm,
  setNumThreads,
  setRngState,
  tensor,
  zeros,
} from 'torchformer';

describe('manualSeed', () => {
  it('gives the numbers of PyTorch 2.13.0 with the same seed', () => {
    manualSeed(42);
    expect(rand([4]).toArray()).toEqual([
      0.8822692632675171, 0.9150039553642273, 0.38286375999450684, 0.9593056440353394,
    ]);
    expect(randn([3], { dtype: 'float64' }).toArray()).toEqual([
      0.23446236336153173, 0.2303330279146119, -1.1228563767381703,
    ]);
    expect(randint(0, 100, [5]).toArray()).toEqual([10, 54, 31, 72, 15]);
    expect(randperm(6).toArray()).toEqual([1, 3, 4, 2, 0, 5]);
    manualSeed(7);
    expect(empty([3]).uniform_(-1, 1).toArray()).toEqual([
      0.06984508037567139, -0.602393627166748, 0.31842339038848877,
    ]);
  });

  it('gives the draws of PyTorch 2.13.0 in place and from weights', () => {
    manualSeed(3);
    expect(tensor([0.1, 0.2, 0.7]).multinomial(5, { replacement: true }).toArray()).toEqual([
      0, 1, 2, 1, 2,
    ]);
    expect(full([6], 0.5).bernoulli().toArray()).toEqual([1, 0, 1, 1, 1, 1]);
    expect(empty([3]).exponential_(2).toArray()).toEqual([
      0.2594641447067261, 0.7537781596183777, 0.10319450497627258,
    ]);
    expect(empty([4], { dtype: 'int64' }).random_(2, 9).toArray()).toEqual([7, 2, 4, 4]);
    expect(empty([4]).bernoulli_(0.3).toArray()).toEqual([0, 0, 1, 1]);
    expect(randLike(zeros([2])).toArray()).toEqual([0.0666458010673523, 0.2539573907852173]);
    expect(randnLike(zeros([2])).toArray()).toEqual([0.49518901109695435, -0.16431698203086853]);
  });

  it('takes seeds beyond 2^53 as bigints, to the last digit', () => {
    manualSeed(2n ** 53n + 1n);
    // torch.manual_seed(2**53 + 1); torch.rand(1)
    expect(rand([1]).item()).toBe(0.7576315999031067);
    manualSeed(2n ** 53n);
    expect(rand([1]).item()).not.toBe(0.7576315999031067);
  });

  it('repeats ops without a generator of their own, and dropout', () => {
    const draw = (): unknown[] => {
      manualSeed(3);
      return [
        callTensor('aten::bernoulli.p', zeros([20]), 0.5).toArray(),
        callTensor('aten::rand', [3]).toArray(),
        callTensor('torchformer::dropout', zeros([20]).add(1), 0.5).toArray(),
      ];
    };
    const first = draw();
    expect(draw()).toEqual(first);
    manualSeed(4);
    expect(callTensor('aten::bernoulli.p', zeros([20]), 0.5).toArray()).not.toEqual(first[0]);
  });

  it('refuses what is no seed', () => {
    for (const seed of [1.5, NaN, -1, 2 ** 53, Infinity, -1n, 2n ** 63n]) {
      expect(() => manualSeed(seed)).toThrow(/manualSeed: seed must be an integer from 0/);
    }
    for (const seed of ['1', null, undefined, tensor(1)]) {
      expect(() => manualSeed(seed as never)).toThrow(TypeError);
    }
  });
});

describe('the random state', () => {
  it('goes back to where it was', () => {
    manualSeed(1);
    rand([5]);
    const state = getRngState();
    const drawn = [rand([3]).toArray(), randn([3]).toArray()];
    setRngState(state);
    expect([rand([3]).toArray(), randn([3]).toArray()]).toEqual(drawn);
    expect(state.dtype).toBe('uint8');
  });

  it('refuses other tensors', () => {
    expect(() => setRngState(zeros([4]))).toThrow(/state must be a uint8 tensor, got float32/);
    expect(() => setRngState(zeros([4], { dtype: 'uint8' }))).toThrow();
    expect(() => setRngState(1 as never)).toThrow(TypeError);
  });
});

describe('distributions', () => {
  it('uniform numbers lie in their range and fill it', () => {
    manualSeed(0);
    const x = empty([10000]).uniform_(2, 4);
    expect(x.min().item()).toBeGreaterThanOrEqual(2);
    expect(x.max().item()).toBeLessThan(4);
    expect(x.mean().item()).toBeCloseTo(3, 1);
  });

  it('normal numbers have their mean and deviation', () => {
    manualSeed(0);
    const x = empty([10000]).normal_(5, 2);
    expect(Math.abs(x.mean().item() - 5)).toBeLessThan(0.1);
    expect(Math.abs(x.std().item() - 2)).toBeLessThan(0.1);
  });

  it('randint covers low to high - 1; randperm holds each number once', () => {
    manualSeed(0);
    const x = randint(-2, 3, [1000]);
    expect([x.min().item(), x.max().item(), x.dtype]).toEqual([-2, 2, 'int64']);
    expect((randperm(100).toArray() as number[]).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 100 }, (_, i) => i),
    );
  });
});

describe('threads', () => {
  it('reads back the number that was set', () => {
    const before = getNumThreads();
    setNumThreads(2);
    expect(getNumThreads()).toBe(2);
    setNumThreads(before);
    expect(getNumThreads()).toBe(before);
  });

  it('refuses what is no number of threads', () => {
    for (const count of [0, -1, 1.5, NaN, 1e9])
      expect(() => setNumThreads(count)).toThrow(RangeError);
    expect(() => setNumThreads('2' as never)).toThrow(TypeError);
  });
});

describe('draws in place and from weights', () => {
  it('one probability, or one for each element', () => {
    expect(
      empty([3])
        .bernoulli_(tensor([0, 1, 0]))
        .toArray(),
    ).toEqual([0, 1, 0]);
    expect(tensor([0, 1]).bernoulli().toArray()).toEqual([0, 1]);
  });

  it('multinomial draws each index once unless it may be replaced', () => {
    expect(tensor([1, 1, 1]).multinomial(3).sort().values.toArray()).toEqual([0, 1, 2]);
    expect(
      tensor([[0, 1]])
        .multinomial(4, { replacement: true })
        .toArray(),
    ).toEqual([[1, 1, 1, 1]]);
  });

  it('refuse faulty arguments', () => {
    const x = zeros([2]);
    expect(() => x.bernoulli_(2)).toThrow('bernoulli_: p must be a number from 0 to 1, got 2');
    expect(() => x.random_(3, 3)).toThrow('random_: from must be below to, got 3 and 3');
    expect(() => x.exponential_(0)).toThrow('exponential_: rate must be positive, got 0');
    expect(() => tensor([1, 1]).multinomial(3)).toThrow(
      'multinomial: 3 draws from 2 weights require { replacement: true }',
    );
    expect(() => zeros([1, 1, 1]).multinomial(1)).toThrow(
      'multinomial: the weights must be [C] or [R, C], got [1, 1, 1]',
    );
  });
});
