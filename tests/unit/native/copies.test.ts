/**
 * Loops of native/core are compiled for several sets of instructions (native/core/loops/simd.h). Nothing
 * fails when the wrong copy runs, it is five times slower: so its rounding is looked at.
 */
import { callTensor, manualSeed, noGrad, ones, randn, zeros } from 'torchformer';
import type { Tensor } from 'torchformer';
import { beforeEach, expect, it } from 'vitest';
import { native } from '../../../dist/tensor/dispatch.js';
import { numbers } from '../../support/numbers.js';

const hasFusedMultiplyAdd = ['AVX2', 'AVX512'].includes(native().versions().cpuCapability);

beforeEach(() => manualSeed(1));

it.runIf(hasFusedMultiplyAdd)('sums are rounded once, as fused multiply-adds do it', () => {
  noGrad(() => {
    const x = randn([100, 64]);
    const scale = randn([64]);
    const shift = randn([64]);
    const norm = (weight: Tensor, bias: Tensor): number[] =>
      numbers(
        callTensor('torchformer::layer_norm', x, weight, bias, 1e-6, {
          sample_std: true,
          eps_outside: true,
        }),
      );
    const normalised = norm(ones([64]), zeros([64]));
    const got = norm(scale, shift);
    const weights = numbers(scale);
    const biases = numbers(shift);
    let telling = 0;
    normalised.forEach((value, index) => {
      // The product of two float32 numbers is exact in float64.
      const product = value * weights[index % 64]!;
      const once = Math.fround(product + biases[index % 64]!);
      const twice = Math.fround(Math.fround(product) + biases[index % 64]!);
      if (once === twice) return;
      telling++;
      expect(got[index]).toBe(once);
    });
    expect(telling).toBeGreaterThan(100);
  });
});
