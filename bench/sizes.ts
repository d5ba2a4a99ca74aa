/** The sizes of suite `train`. */

/** Sizes, by the names of `makeModel`'s options. */
export interface ModelSize {
  readonly vocabSize: number;
  readonly N: number;
  readonly dModel: number;
  readonly dFf: number;
  readonly h: number;
}

/** How long participants are measured. */
export interface TurnSizes {
  /** Steps before the timed ones. */
  readonly warmup: number;
  /** Timed steps per round. */
  readonly steps: number;
  /** Number of turns of every participant. */
  readonly rounds: number;
}

export interface TrainSize extends TurnSizes {
  readonly model: ModelSize;
  readonly corpus: 'multi30k' | 'tatoeba';
  /** Pairs of a padded batch. */
  readonly batchSize: number;
  /** For the table of length-bucketed batches; null: this size has none. */
  readonly buckets: (TurnSizes & { readonly tokens: number }) | null;
}

export const sizeNames = ['small', 'base', 'seed'] as const;
export type SizeName = (typeof sizeNames)[number];

export const trainSizes: Readonly<Record<SizeName, TrainSize>> = {
  small: {
    model: { vocabSize: 8000, N: 3, dModel: 256, dFf: 1024, h: 8 },
    corpus: 'multi30k',
    batchSize: 50,
    warmup: 5,
    steps: 20,
    rounds: 3,
    buckets: { tokens: 3000, warmup: 4, steps: 12, rounds: 3 },
  },
  base: {
    model: { vocabSize: 8000, N: 6, dModel: 512, dFf: 2048, h: 8 },
    corpus: 'multi30k',
    batchSize: 50,
    warmup: 2,
    steps: 8,
    rounds: 2,
    buckets: { tokens: 3000, warmup: 3, steps: 6, rounds: 2 },
  },
  // One eager step takes about ten seconds and 8 GB.
  seed: {
    model: { vocabSize: 151_643, N: 6, dModel: 512, dFf: 2048, h: 8 },
    corpus: 'tatoeba',
    batchSize: 50,
    warmup: 2,
    steps: 5,
    rounds: 1,
    buckets: null,
  },
};

/** Number of losses that are compared, with dropout 0. */
export const comparedLosses = 10;

/** `V 8000, N 6, d 512, ff 2048, h 8` */
export function describeModel({ vocabSize, N, dModel, dFf, h }: ModelSize): string {
  return `V ${vocabSize}, N ${N}, d ${dModel}, ff ${dFf}, h ${h}`;
}
