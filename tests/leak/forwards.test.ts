import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { memory, ones, randn, tidy, zeros, type Tensor } from 'torchformer';

const megabyte = 1024 * 1024;
const rounds = 10_000;
const warmUp = 1_000;
const allowedGrowth = 50 * megabyte;

/** Bytes. */
interface Peak {
  native: number;
  resident: number;
}

/**
 * Runs `step` over and over, a turn of the event loop after each. The collector lets garbage pile
 * up to a limit of its own, so peaks are compared: after the warm-up against during it.
 */
async function peakGrowthOf(step: () => void): Promise<Peak> {
  const peaks: Peak[] = [
    { native: 0, resident: 0 },
    { native: 0, resident: 0 },
  ];
  for (let round = 0; round < rounds; round++) {
    step();
    await setImmediate();
    const peak = peaks[round < warmUp ? 0 : 1]!;
    peak.native = Math.max(peak.native, memory().nativeBytes);
    peak.resident = Math.max(peak.resident, process.memoryUsage.rss());
  }
  const [before, after] = peaks as [Peak, Peak];
  return { native: after.native - before.native, resident: after.resident - before.resident };
}

/** A network with its graph, whose intermediate values take about 270 kB a forward. */
function makeForward(): () => Tensor {
  const input = randn([64, 128]);
  const w1 = randn([128, 512], { requiresGrad: true });
  const w2 = randn([512, 8], { requiresGrad: true });
  return () => input.matmul(w1).relu().matmul(w2).logSoftmax(-1);
}

describe('10000 forward passes', { timeout: 300_000 }, () => {
  it('without a single dispose keep memory flat: the collector learns of native bytes', async () => {
    const forward = makeForward();
    const { native, resident } = await peakGrowthOf(() => void forward());
    expect(native).toBeLessThan(allowedGrowth);
    expect(resident).toBeLessThan(allowedGrowth);
  });

  it('of tiny tensors without dispose keep memory flat too', async () => {
    const x = ones([4]);
    const { native, resident } = await peakGrowthOf(() => void x.mul(2).add(1).sum());
    expect(native).toBeLessThan(allowedGrowth);
    expect(resident).toBeLessThan(allowedGrowth);
  });

  it('in tidy leave nothing behind, not even within one tick', () => {
    const forward = makeForward();
    tidy(forward).dispose();
    const before = memory();
    for (let round = 0; round < rounds; round++) tidy(() => void forward());
    expect(memory()).toEqual(before);
  });

  it('with backward leave the gradients only', () => {
    const w = zeros([64, 64], { requiresGrad: true });
    const step = (): void => {
      tidy(() => {
        w.matmul(w).sum().backward();
      });
    };
    step();
    const before = memory();
    for (let round = 0; round < 1000; round++) step();
    expect(memory()).toEqual(before);
  });
});
