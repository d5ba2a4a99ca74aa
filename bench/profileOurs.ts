/**
 * A process of `--profile`: our training steps with the time of every op, and the best rates of this
 * processor.
 *
 * Arguments: job file, dtype, number of steps before the profiled ones.
 */
import { profile, randn, tidy, type OpTime } from 'torchformer';
import type { TrainDType } from './options.js';
import { setUp } from './trainSetup.js';

/** The JSON line that it prints. */
export interface ProfileResult {
  /** Total seconds of the profiled steps, and their number. */
  readonly seconds: number;
  readonly steps: number;
  readonly sourceTokens: number;
  readonly targetTokens: number;
  readonly times: readonly OpTime[];
  /** Best rate of several products of large float32 matrices. */
  readonly flopsPerSecond: number;
  /** Best rate of several sums of large tensors, counting everything read and written. */
  readonly bytesPerSecond: number;
}

const [jobFile, dtype, warmup] = process.argv.slice(2) as [string, TrainDType, string];
const { trainer, batches } = await setUp(jobFile, dtype, null);
const before = batches.slice(0, Number(warmup));
const profiled = batches.slice(Number(warmup));
if (before.length > 0) await trainer.fit(before, { epochs: 1 });
const start = performance.now();
const { times } = await profile(() => trainer.fit(profiled, { epochs: 1 }));
const seconds = (performance.now() - start) / 1000;
const result: ProfileResult = {
  seconds,
  steps: profiled.length,
  sourceTokens: profiled.reduce((sum, { src }) => sum + tidy(() => src.ne(0).sum().item()), 0),
  targetTokens: profiled.reduce((sum, { ntokens }) => sum + ntokens, 0),
  times,
  ...limits(),
};
console.log(JSON.stringify(result));

function limits(): { flopsPerSecond: number; bytesPerSecond: number } {
  const best = (work: () => void): number =>
    Math.min(
      ...Array.from({ length: 6 }, () => {
        const begin = performance.now();
        tidy(() => {
          work();
        });
        return (performance.now() - begin) / 1000;
      }),
    );
  const size = 2048;
  const matrix = randn([size, size]);
  const large = randn([1 << 26]);
  return {
    flopsPerSecond: (2 * size ** 3) / best(() => matrix.matmul(matrix)),
    // In place: one read, one write of four bytes.
    bytesPerSecond: (8 * large.numel) / best(() => large.add_(1)),
  };
}
