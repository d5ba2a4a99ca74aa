/** The switch between float32 and TF32 for products of matrices. */
import { afterEach, describe, expect, it } from 'vitest';
import { cuda, manualSeed, randn } from 'torchformer';

afterEach(() => cuda.setFloat32Precision('highest'));

/** The largest error of a float32 product on the GPU, as a share of the largest element. */
function errorOfProduct(): number {
  manualSeed(1);
  const [a, b] = [randn([512, 512]), randn([512, 512])];
  const exact = a.double().matmul(b.double());
  const there = a.cuda().matmul(b.cuda()).cpu().double();
  return there.sub(exact).abs().max().item() / exact.abs().max().item();
}

describe('products of float32 matrices', () => {
  it('are computed in float32 unless told otherwise', () => {
    expect(cuda.float32Precision()).toBe('highest');
    expect(errorOfProduct()).toBeLessThan(1e-6);
  });

  it.runIf(cuda.capability()[0] >= 8)('are computed in TF32 when told, and back', () => {
    cuda.setFloat32Precision('high');
    const error = errorOfProduct();
    expect(error).toBeGreaterThan(1e-5);
    expect(error).toBeLessThan(1e-2);
    cuda.setFloat32Precision('highest');
    expect(errorOfProduct()).toBeLessThan(1e-6);
  });
});
