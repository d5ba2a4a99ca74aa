import { describe, expect, it } from 'vitest';
import type { Device, DType, Tensor } from 'torchformer';
import { hasRowUpdate } from '../../../dist/optim/adam.js';
import { native } from '../../../dist/tensor/dispatch.js';

const table = (device: string, dtype: DType = 'float32') =>
  ({ device: device as Device, dtype }) as Tensor;

describe('whether rows of a table can be updated alone', () => {
  it('is so on the CPU, in float32 and float64', () => {
    expect(hasRowUpdate(table('cpu'))).toBe(true);
    expect(hasRowUpdate(table('cpu', 'float64'))).toBe(true);
    expect(hasRowUpdate(table('cpu', 'bfloat16'))).toBe(false);
  });

  it('is so on a GPU only where our kernels are open', () => {
    const areOpen = native().hasKernel('torchformer_device::norm_forward', '', 'cuda:0');
    expect(hasRowUpdate(table('cuda:0'))).toBe(areOpen);
  });

  it('is not so on a kind of device that only has an Autograd key', () => {
    // Of all ops there is a line "AutogradXPU", "AutogradCUDA" in the dispatcher's table.
    expect(native().kernels('torchformer_device::adam_rows_', '')).toContain('AutogradXPU');
    expect(hasRowUpdate(table('xpu:0'))).toBe(false);
  });
});
