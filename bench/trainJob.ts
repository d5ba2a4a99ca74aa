/** The input and output of the participants of suite `train`. */
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

/** What every training job says; peers read the same file. */
export interface ModelJob {
  readonly model: ModelSize;
  /** 0 applies to everything, including attention; otherwise attention keeps its own 0.1, as in seed 001. */
  readonly dropout: number;
  readonly learningRate: number;
  /** Initial weights, as safetensors with PyTorch's names. */
  readonly weights: string;
  readonly threads: number;
  /** The device; default `cpu`. */
  readonly device?: Device;
  readonly seed: number;
}

/** A job on given batches. */
export interface TrainJob extends ModelJob {
  /** A {@link BatchFile}; step n uses batch n. */
  readonly batches: string;
  /** Number of steps, including those before the timed ones. */
  readonly steps: number;
}

/** The JSON line that a participant prints. Lists have one value per step. */
export interface TrainResult {
  readonly seconds: readonly number[];
  /** Target tokens, without padding. */
  readonly tokens: readonly number[];
  /** Mean over the tokens. */
  readonly losses: readonly number[];
  readonly peakRss: number;
  /** Peers only: the version of PyTorch and the instruction set that it chose. */
  readonly torch?: string;
  readonly capability?: string;
}
