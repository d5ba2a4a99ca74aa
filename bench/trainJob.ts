/** What the participants of suite `train` are told, and what they answer. */
import type { Device } from 'torchformer';
import type { ModelSize } from './sizes.js';

/** A sentence pair as ids, bos and eos on both sides. */
export interface IdPair {
  readonly src: readonly number[];
  readonly tgt: readonly number[];
}

/** The file of batches. Padding is 0 throughout, as in seed 001. */
export interface BatchFile {
  readonly bos: number;
  readonly eos: number;
  readonly batches: readonly (readonly IdPair[])[];
}

/** The job file; peers read the same one. */
export interface TrainJob {
  readonly model: ModelSize;
  /** Of everything, attention included: 0; else attention keeps its own 0.1, as in seed 001. */
  readonly dropout: number;
  readonly learningRate: number;
  /** Initial weights, safetensors under PyTorch's names. */
  readonly weights: string;
  /** A {@link BatchFile}; step n takes batch n. */
  readonly batches: string;
  /** All steps, those before the timed ones included. */
  readonly steps: number;
  readonly threads: number;
  /** Where it is done, `cpu` when not given. */
  readonly device?: Device;
  readonly seed: number;
}

/** The line of JSON that a participant prints. Lists have one value a step. */
export interface TrainResult {
  readonly seconds: readonly number[];
  /** Target tokens, padding left out. */
  readonly tokens: readonly number[];
  /** Mean over the tokens. */
  readonly losses: readonly number[];
  readonly peakRss: number;
  /** Peers only: the version of PyTorch and the instruction set that it chose. */
  readonly torch?: string;
  readonly capability?: string;
}
