/**
 * What becomes of CUDA's faults. The texts are those of libtorch 2.13.0 and CUDA 13.0, thrown by an op
 * that throws what it is given: where no GPU is, they cannot come from one.
 */
import { describe, expect, it } from 'vitest';
import { call, callAsync, ones, TorchError, zeros, type TorchErrorCode } from 'torchformer';

const advice = (name: string): string =>
  `\nSearch for \`${name}' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html ` +
  'for more information.\nCUDA kernel errors might be asynchronously reported at some other API call, ' +
  'so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n' +
  'Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n';

const outOfMemory =
  'CUDA out of memory. Tried to allocate 20.00 GiB. GPU 1 has a total capacity of 139.81 GiB of which ' +
  '10.12 GiB is free. Process 4711 has 3.00 GiB memory in use. Of the allocated memory 126.50 GiB is ' +
  'allocated by PyTorch, and 30.00 MiB is reserved by PyTorch but unallocated. If reserved but ' +
  'unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid ' +
  'fragmentation.  See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/' +
  'notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)';

const smaller = 'Use a smaller batch, or free tensors; cuda.memory() shows what is in use';

/** What libtorch says, the code, and what the error says. */
const faults: [says: string, code: TorchErrorCode, message: string][] = [
  [
    outOfMemory,
    'ERR_OUT_OF_MEMORY',
    `cuda:1 is out of memory: 20.00 GiB were asked for, 10.12 GiB of 139.81 GiB are free. ${smaller}`,
  ],
  [
    'CUDA out of memory. Tried to allocate more than 1EB memory.',
    'ERR_OUT_OF_MEMORY',
    `CUDA out of memory. Tried to allocate more than 1EB memory. ${smaller}`,
  ],
  [
    'CUDA out of memory. Allocation was preemptively rejected because it would exceed ' +
      'per_process_memory_fraction limit. Requested size: 20.00 GiB',
    'ERR_OUT_OF_MEMORY',
    'CUDA out of memory. Allocation was preemptively rejected because it would exceed ' +
      `per_process_memory_fraction limit. Requested size: 20.00 GiB. ${smaller}`,
  ],
  [
    `CUDA error: out of memory${advice('cudaErrorMemoryAllocation')}`,
    'ERR_OUT_OF_MEMORY',
    `CUDA error: out of memory. ${smaller}`,
  ],
  [
    'CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`',
    'ERR_OUT_OF_MEMORY',
    `CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling \`cublasCreate(handle)\`. ${smaller}`,
  ],
  [
    'Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a ' +
      'driver from http://www.nvidia.com/Download/index.aspx',
    'ERR_CUDA_UNAVAILABLE',
    'no NVIDIA driver works on this system',
  ],
  [
    'The NVIDIA driver on your system is too old (found version 12040). Please update your GPU driver ' +
      'by downloading and installing a new version from the URL: ' +
      'http://www.nvidia.com/Download/index.aspx Alternatively, go to: https://pytorch.org to install ' +
      'a PyTorch version that has been compiled with your version of the CUDA driver.',
    'ERR_CUDA_UNAVAILABLE',
    'the NVIDIA driver of this system is too old for this libtorch (it supports CUDA up to 12.4); ' +
      'install a newer one',
  ],
  [
    'CUDA error: CUDA driver version is insufficient for CUDA runtime version' +
      advice('cudaErrorInsufficientDriver'),
    'ERR_CUDA_UNAVAILABLE',
    'the NVIDIA driver of this system is too old for this libtorch; install a newer one',
  ],
  ['No CUDA GPUs are available', 'ERR_CUDA_UNAVAILABLE', 'the NVIDIA driver finds no GPU'],
  [
    `CUDA error: no CUDA-capable device is detected${advice('cudaErrorNoDevice')}`,
    'ERR_CUDA_UNAVAILABLE',
    'the NVIDIA driver finds no GPU',
  ],
  [
    'CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env ' +
      'variable CUDA_VISIBLE_DEVICES after program start. Setting the available devices to be zero.',
    'ERR_CUDA_UNAVAILABLE',
    'the NVIDIA driver does not start',
  ],
  [
    `CUDA error: no kernel image is available for execution on the device${advice('cudaErrorNoKernelImageForDevice')}`,
    'ERR_CUDA_UNAVAILABLE',
    'this libtorch has no code for this kind of GPU',
  ],
  [
    `CUDA error: CUDA-capable device(s) is/are busy or unavailable${advice('cudaErrorDevicesUnavailable')}`,
    'ERR_CUDA_UNAVAILABLE',
    'CUDA error: CUDA-capable device(s) is/are busy or unavailable',
  ],
  [
    `CUDA error: invalid device ordinal${advice('cudaErrorInvalidDevice')}`,
    'ERR_DEVICE',
    'there is no GPU with this index (CUDA error: invalid device ordinal)',
  ],
  [
    `CUDA error: invalid argument${advice('cudaErrorInvalidValue')}`,
    'ERR_NATIVE',
    'CUDA error: invalid argument',
  ],
];

/** After these CUDA refuses everything. */
const fatal = [
  'device-side assert triggered',
  'an illegal memory access was encountered',
  'misaligned address',
  'an illegal instruction was encountered',
  'invalid program counter',
  'operation not supported on global/shared address space',
  'hardware stack error',
  'unspecified launch failure',
  'the launch timed out and was terminated',
  'uncorrectable ECC error encountered',
  'unknown error',
];

/** Fails on the CPU with any text. */
const says = (text: string): unknown => call('aten::_assert_async.msg', zeros([]), text);

function faultOf(run: () => unknown): TorchError {
  try {
    run();
  } catch (error) {
    if (error instanceof TorchError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

describe('a fault of CUDA becomes a TorchError', () => {
  it.each(faults)('%s', async (text, code, message) => {
    const error = faultOf(() => says(text));
    expect([error.code, error.message]).toEqual([code, message]);
    await expect(callAsync('aten::_assert_async.msg', zeros([]), text)).rejects.toMatchObject({
      code,
      message,
    });
  });

  it.each(fatal)('%s: CUDA is lost for the process, and the error says so', (fault) => {
    const { code, message } = faultOf(() => says(`CUDA error: ${fault}${advice('cudaError')}`));
    expect(code).toBe('ERR_CUDA_LOST');
    expect(message).toContain(`CUDA error: ${fault}. This process can no longer use CUDA`);
    expect(message).toContain('CUDA_LAUNCH_BLOCKING=1');
    expect(message).not.toContain('Search for');
  });

  it('only CUDA’s own texts are taken for its faults', () => {
    const { code, message } = faultOf(() => says('the file ends with an unknown error'));
    expect([code, message]).toEqual(['ERR_NATIVE', 'the file ends with an unknown error']);
  });

  it('without a GPU the CPU goes on computing after each of them', () => {
    for (const fault of fatal) faultOf(() => says(`CUDA error: ${fault}`));
    expect(ones([2]).add(1).toArray()).toEqual([2, 2]);
  });
});
