/** GPUs, their names, and tensors that go there and come back. */
import { describe, expect, it } from 'vitest';
import {
  arange,
  cuda,
  Linear,
  makeModel,
  manualSeed,
  ones,
  ops,
  randn,
  tensor,
  tidy,
  TorchError,
  zeros,
  type Device,
} from 'torchformer';

const count = cuda.deviceCount();
const all = Array.from({ length: count }, (_gpu, index): Device => `cuda:${index}`);
const missing = `cuda:${count}` as const;

describe('the GPUs', () => {
  it('are available, without a reason why not', () => {
    expect([cuda.isAvailable(), cuda.unavailableReason()]).toEqual([true, null]);
  });

  it.each(all)('%s has a name, a compute capability and memory', (device) => {
    expect(cuda.name(device)).toMatch(/\w/);
    const [major, minor] = cuda.capability(device);
    expect(major).toBeGreaterThanOrEqual(5);
    expect(minor).toBeGreaterThanOrEqual(0);
    const { free, total } = cuda.memory(device);
    expect(total).toBeGreaterThan(2 ** 30);
    expect(free).toBeGreaterThan(0);
    expect(free).toBeLessThanOrEqual(total);
  });

  it('can be named by their numbers; the first is meant when none is', () => {
    expect(cuda.name(0)).toBe(cuda.name());
    expect(cuda.name('cuda')).toBe(cuda.name('cuda:0'));
  });

  it('beyond the last are refused with the names that there are', () => {
    const last = all.at(-1) as string;
    for (const run of [
      () => zeros([1], { device: missing }),
      () => ones([1]).cuda(count),
      () => new Linear(1, 1).to(missing),
      () => cuda.memory(count),
      () => cuda.synchronize(missing),
    ]) {
      expect(run).toThrow(RangeError);
      expect(run).toThrow(`this process sees ${count} GPU`);
      expect(run).toThrow(`'${last}'`);
    }
  });

  it('beyond the last are errors of raw ops too, and the process goes on', () => {
    expect(() => ops.aten.zeros([1], { device: missing })).toThrow(TorchError);
    expect(zeros([1], { device: 'cuda' }).toArray()).toEqual([0]);
  });
});

describe('tensors', () => {
  it.each(['auto', 'cuda', 'cuda:0'] as const)('made on %s are on cuda:0', (device) => {
    expect(zeros([2], { device }).device).toBe('cuda:0');
    expect(tensor([1, 2], { device }).toArray()).toEqual([1, 2]);
    expect(arange(3, { device }).toArray()).toEqual([0, 1, 2]);
    expect(randn([4], { device }).device).toBe('cuda:0');
  });

  it('come back with the very bits, in every dtype', () => {
    const values = tensor([0, 1, 2.5, 100]);
    for (const dtype of ['float64', 'float16', 'bfloat16', 'int64', 'uint8', 'bool'] as const) {
      const there = values.to({ dtype });
      expect(there.cuda().cpu().bytes()).toEqual(there.bytes());
      expect(there.cuda().data()).toEqual(there.data());
    }
  });

  it('compute there what the CPU computes', () => {
    manualSeed(1);
    const [a, b] = [randn([64, 48]), randn([48, 80])];
    const there = a.cuda().matmul(b.cuda());
    expect(there.device).toBe('cuda:0');
    expect(there.cpu().allclose(a.matmul(b), { rtol: 1e-4, atol: 1e-4 })).toBe(true);
  });

  it('to a device where they are already is no copy', () => {
    const x = ones([2], { device: 'cuda' });
    x.to({ device: 'cuda' }).fill_(3);
    expect(x.toArray()).toEqual([3, 3]);
  });

  it.runIf(count > 1)('go from GPU to GPU', () => {
    const x = arange(1000, { device: 'cuda:0' });
    const y = x.to({ device: 'cuda:1' });
    expect([y.device, y.cpu().equal(x.cpu())]).toEqual(['cuda:1', true]);
  });
});

describe('modules', () => {
  it('go there with parameters, buffers and gradients, and stay the same objects', () => {
    const model = makeModel(11, { N: 1, dModel: 16, dFf: 32, h: 2 }).eval();
    const parameters = model.parameters();
    expect(model.to('cuda')).toBe(model);
    expect(model.parameters()).toEqual(parameters);
    const devices = [...model.stateDict().values()].map(({ device }) => device);
    expect(new Set(devices)).toEqual(new Set(['cuda:0']));
    model.cpu();
    expect(new Set(parameters.map(({ device }) => device))).toEqual(new Set(['cpu']));
  });

  it('give there what they give on the CPU', () => {
    manualSeed(1);
    const model = makeModel(11, { N: 2, dModel: 16, dFf: 32, h: 2 }).eval();
    const ids = tensor([[1, 5, 6, 2]], { dtype: 'int64' });
    const here = model.forward(ids, ids, null, null);
    const there = model.to('cuda').forward(ids.cuda(), ids.cuda(), null, null);
    expect(there.cpu().allclose(here, { rtol: 0, atol: 1e-5 })).toBe(true);
  });

  it('carry NaN through, as on the CPU: an output, and no error', () => {
    const model = makeModel(11, { N: 1, dModel: 16, dFf: 32, h: 2 }).eval().to('cuda');
    const ids = tensor([[1, 5, 2]], { dtype: 'int64', device: 'cuda' });
    tidy(() => {
      const vectors = model.encode(ids, null).mul(NaN);
      const out = model.decode(vectors, null, ids, null);
      expect(out.isnan().all().item()).toBe(1);
    });
    cuda.synchronize();
  });
});

describe('copies that do not wait', () => {
  it('from pinned memory arrive whole', () => {
    const source = randn([1 << 20]).pinMemory();
    expect(source.isPinned).toBe(true);
    const there = source.to({ device: 'cuda', nonBlocking: true });
    expect(there.cpu().equal(source)).toBe(true);
  });

  it('to the CPU are whole after a synchronize', async () => {
    const there = randn([1 << 20], { device: 'cuda' });
    const here = there.to({ device: 'cpu', nonBlocking: true });
    await cuda.synchronizeAsync();
    expect(here.equal(there.cpu())).toBe(true);
  });

  it('pinning again is no copy, and other memory cannot be pinned', () => {
    const pinned = ones([2]).pinMemory();
    pinned.pinMemory().fill_(5);
    expect(pinned.toArray()).toEqual([5, 5]);
    expect(ones([2]).isPinned).toBe(false);
    expect(() => ones([2], { device: 'cuda' }).pinMemory()).toThrow(
      'pinMemory: only tensors on the CPU can be pinned, this one is on cuda:0',
    );
  });
});
