/** GPUs on a machine that may have none. What needs one is in tests/gpu. */
import { describe, expect, it } from 'vitest';
import {
  arange,
  batches,
  cuda,
  Linear,
  makeBatch,
  ones,
  padSequences,
  subsequentMask,
  tensor,
  Tokenizer,
  type TorchError,
  trainBpe,
  TranslationDataset,
  zeros,
  zerosLike,
  type Tensor,
} from 'torchformer';
import { checkGpuIndex } from '../../../dist/tensor/device.js';

const available = cuda.isAvailable();

function faultOf(run: () => unknown): Error {
  try {
    run();
  } catch (error) {
    return error as Error;
  }
  throw new Error('nothing was thrown');
}

const tokenizer = Tokenizer.fromJson(await trainBpe(['a b'], { vocabSize: 260 }));
const dataset = await TranslationDataset.fromPairs([{ src: 'a', tgt: 'b' }], {
  tokenizer,
  specialIds: { pad: 0, bos: 1, eos: 2 },
});
const pair = { src: [1, 2], tgt: [1, 3, 2], row: 1 };

/** Everything with an option for the device, as one call each. */
const takingDevices: Record<string, (device: never) => unknown> = {
  zeros: (device) => zeros([1], { device }),
  tensor: (device) => tensor([1], { device }),
  arange: (device) => arange(3, { device }),
  zerosLike: (device) => zerosLike(ones([1]), { device }),
  to: (device) => ones([1]).to({ device }),
  'Module.to': (device) => new Linear(1, 1).to({ device }),
  makeBatch: (device) => makeBatch([pair], 0, device),
  padSequences: (device) => padSequences([[1]], 0, device),
  batches: (device) => batches(dataset, { device }),
};

describe('cuda', () => {
  it('tells whether a GPU can be used, how many, and why none: all three agree', () => {
    const count = cuda.deviceCount();
    expect(cuda.isAvailable()).toBe(count > 0);
    expect(cuda.unavailableReason() === null).toBe(count > 0);
  });

  it('computes products of float32 in full precision unless told otherwise', () => {
    expect(cuda.float32Precision()).toBe('highest');
    cuda.setFloat32Precision('high');
    expect(cuda.float32Precision()).toBe('high');
    cuda.setFloat32Precision('highest');
    expect(cuda.float32Precision()).toBe('highest');
    expect(() => cuda.setFloat32Precision('medium' as never)).toThrow(
      `cuda.setFloat32Precision: precision must be 'highest' or 'high', got the string "medium"`,
    );
  });

  it('knows no GPU under another name', () => {
    for (const device of ['cpu', 'auto', 'gpu', -1, 1.5, null, {}]) {
      const error = faultOf(() => cuda.memory(device as never));
      expect(error).toBeInstanceOf(TypeError);
      expect(error.message).toMatch(/^cuda\.memory: device must be 'cuda', 'cuda:<number>' or/);
    }
  });

  it.skipIf(available)('what needs a GPU says why there is none, and what to do', async () => {
    const reason = cuda.unavailableReason() as string;
    const calls: [string, () => unknown][] = [
      ['cuda.name', () => cuda.name()],
      ['cuda.capability', () => cuda.capability(0)],
      ['cuda.memory', () => cuda.memory('cuda')],
      ['cuda.resetPeakMemory', () => cuda.resetPeakMemory('cuda:0')],
      ['cuda.emptyCache', () => cuda.emptyCache()],
      ['cuda.synchronize', () => cuda.synchronize()],
    ];
    for (const [name, run] of calls) {
      const error = faultOf(run) as TorchError;
      expect([error.name, error.code]).toEqual(['TorchError', 'ERR_CUDA_UNAVAILABLE']);
      expect(error.message).toMatch(new RegExp(`^${name.replace('.', '\\.')}: `));
      expect(error.message).toContain(`no CUDA GPU can be used here: ${reason}. `);
      expect(error.message).toMatch(/\.$/);
    }
    await expect(cuda.synchronizeAsync()).rejects.toMatchObject({ code: 'ERR_CUDA_UNAVAILABLE' });
  });
});

describe('the device of tensors', () => {
  it("'auto' is a GPU if there is one, else the CPU; a tensor's device is never 'auto'", () => {
    const expected = available ? 'cuda:0' : 'cpu';
    expect(zeros([1], { device: 'auto' }).device).toBe(expected);
    expect(ones([1]).to({ device: 'auto' }).device).toBe(expected);
    expect(subsequentMask(2, { device: 'auto' }).device).toBe(expected);
    const batch = makeBatch([pair], 0, 'auto');
    expect([batch.src.device, batch.tgtMask.device]).toEqual([expected, expected]);
    expect(new Linear(1, 1).to('auto').weight.device).toBe(expected);
    expect(new Linear(1, 1).to({ device: 'auto' }).weight.device).toBe(expected);
  });

  it.each(Object.entries(takingDevices))('%s takes no other name', (_name, run) => {
    for (const device of ['gpu', 'cuda:', 'cuda:-1', 'cuda:x', 'CPU', 0, null]) {
      const error = faultOf(() => run(device as never));
      expect(error).toBeInstanceOf(TypeError);
      expect(error.message).toMatch(/device must be 'auto', 'cpu', 'cuda' or 'cuda:<number>'/);
    }
  });

  it.skipIf(available).each(Object.entries(takingDevices))(
    '%s refuses a GPU where there is none',
    (_name, run) => {
      for (const device of ['cuda', 'cuda:0', 'cuda:7']) {
        const error = faultOf(() => run(device as never)) as TorchError;
        expect(error.code).toBe('ERR_CUDA_UNAVAILABLE');
        expect(error.message).toContain(`device is '${device}', but no CUDA GPU can be used here`);
      }
    },
  );

  it('a module that cannot be moved stays as it was', () => {
    const module = new Linear(2, 2);
    const before = module.weight.toArray();
    expect(faultOf(() => module.to('cuda:99' as never))).toBeInstanceOf(Error);
    expect([module.weight.device, module.weight.toArray()]).toEqual(['cpu', before]);
  });

  it('the number of a GPU beyond the last is refused with the names that there are', () => {
    const message = (index: number, devices: number): string =>
      faultOf(() => checkGpuIndex('zeros', `device is 'cuda:${index}', but`, index, devices))
        .message;
    expect(message(1, 1)).toBe(
      "zeros: device is 'cuda:1', but this process sees 1 GPU: only 'cuda:0'",
    );
    expect(message(4, 2)).toBe(
      "zeros: device is 'cuda:4', but this process sees 2 GPUs: 'cuda:0' to 'cuda:1'",
    );
    expect(() => checkGpuIndex('zeros', '', 1, 2)).not.toThrow();
  });
});

describe('copies that do not wait', () => {
  it('are copies like others on the CPU', () => {
    const x = ones([2]);
    expect(x.to({ dtype: 'float64', nonBlocking: true }).toArray()).toEqual([1, 1]);
    expect(new Linear(1, 1).to({ dtype: 'float64', nonBlocking: true }).weight.dtype).toBe(
      'float64',
    );
    expect(() => x.to({ nonBlocking: 1 as never })).toThrow(
      'to: nonBlocking must be true or false, got 1',
    );
    expect(() => new Linear(1, 1).to({ nonBlocking: 'yes' as never })).toThrow(
      'Module.to: nonBlocking must be true or false',
    );
  });

  it.skipIf(available)('memory is pinned for a GPU only', () => {
    const x: Tensor = ones([2]);
    expect(x.isPinned).toBe(false);
    const error = faultOf(() => x.pinMemory()) as TorchError;
    expect(error.code).toBe('ERR_CUDA_UNAVAILABLE');
    expect(error.message).toMatch(
      /^pinMemory: pinned memory is for copies to a GPU, and no CUDA GPU can be used here: /,
    );
  });
});
