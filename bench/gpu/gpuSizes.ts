/** The sizes of the benchmarks on a GPU. */
import { trainSizes, type ModelSize } from '../sizes.js';

export interface GpuSize {
  readonly model: ModelSize;
  readonly corpus: 'multi30k' | 'tatoeba';
  /**
   * Of a batch: so many pairs, or as many as make so many tokens on the longer side. In the latter
   * pairs of like length share a batch, so that peers, which compute padding, have little of it.
   */
  readonly batch: { readonly pairs: number } | { readonly tokens: number };
  /** What a batch is, in words. */
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

/** Untimed steps of every turn, for what is chosen and allocated at the first use of a shape. */
export const warmupSteps = 3;

/** Timed steps of every turn. */
export const timedSteps = 10;

/** Batches that are prepared: every turn takes the same ones. */
export const batchCount = warmupSteps + timedSteps;
