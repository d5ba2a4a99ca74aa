/** The models and searches of suite `decode`. */
import { trainSizes, type ModelSize } from '../sizes.js';

export const decodeSizeNames = ['tiny', 'small', 'base'] as const;
export type DecodeSizeName = (typeof decodeSizeNames)[number];

export const decodeModels: Readonly<Record<DecodeSizeName, ModelSize>> = {
  tiny: { vocabSize: 8000, N: 2, dModel: 128, dFf: 512, h: 8 },
  small: trainSizes.small.model,
  base: trainSizes.base.model,
};

/** Tokens of every source with bos and eos, and of every target, on models that never end. */
export const sourceLength = 20;
export const targetLength = 39;

export const searchNames = ['greedy-1', 'greedy-32', 'beam-1', 'beam-32'] as const;
export type SearchName = (typeof searchNames)[number];

/** A search and the number of sentences that are decoded together. */
export interface SearchCase {
  /** Hypotheses per sentence; 1 is greedy search. */
  readonly beam: number;
  readonly batch: number;
}

export const searchCases: Readonly<Record<SearchName, SearchCase>> = {
  'greedy-1': { beam: 1, batch: 1 },
  'greedy-32': { beam: 1, batch: 32 },
  'beam-1': { beam: 4, batch: 1 },
  'beam-32': { beam: 4, batch: 32 },
};

/** `greedy, batch 32` */
export function describeSearch({ beam, batch }: SearchCase): string {
  return `${beam === 1 ? 'greedy' : `beam ${beam}`}, batch ${batch}`;
}
