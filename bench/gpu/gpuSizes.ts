/** The sizes of the benchmarks on a GPU. */
import { trainSizes, type ModelSize } from '../sizes.js';

export interface GpuSize {
  readonly model: ModelSize;
  readonly corpus: 'multi30k' | 'tatoeba';
  /**
   * Size of a batch: a number of pairs, or a token budget for the longer side. With a budget, pairs of
   * similar length share a batch, so that peers, which compute padding, have little of it.
   */
  readonly batch: { readonly pairs: number } | { readonly tokens: number };
  /** Description of a batch. */
  readonly about: string;
}

export const gpuSizeNames = ['seed', 'tokens', 'tiny'] as const;
export type GpuSizeName = (typeof gpuSizeNames)[number];

export const gpuSizes: Readonly<Record<GpuSizeName, GpuSize>> = {
  seed: {
    model: trainSizes.seed.model,
    corpus: 'tatoeba',
    batch: { pairs: trainSizes.seed.batchSize },
    about: 'batches of 50 pairs of Tatoeba en-zh',
  },
  tokens: {
    model: { ...trainSizes.base.model, vocabSize: 32_000 },
    corpus: 'multi30k',
    batch: { tokens: 25_000 },
    about: 'batches of 25,000 tokens of Multi30k de-en, sorted by length',
  },
  // For rehearsals, which run on the CPU.
  tiny: {
    model: { vocabSize: 1000, N: 1, dModel: 64, dFf: 128, h: 4 },
    corpus: 'multi30k',
    batch: { pairs: 8 },
    about: 'batches of 8 pairs of Multi30k de-en',
  },
};

/** Untimed steps of every turn, in which kernels are chosen and memory is allocated for each shape. */
export const warmupSteps = 3;

/** Timed steps of every turn. */
export const timedSteps = 10;

/** Number of prepared batches: every turn uses the same ones. */
export const batchCount = warmupSteps + timedSteps;
