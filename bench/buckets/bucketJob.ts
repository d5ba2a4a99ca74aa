/** The input and output of the participants on length-bucketed batches. */
import type { IdPair, ModelJob, TrainResult } from '../trainJob.js';

/** The file of pairs. Every participant makes its own batches from them. Padding is 0. */
export interface BucketFile {
  readonly bos: number;
  readonly eos: number;
  readonly training: readonly IdPair[];
  readonly validation: readonly IdPair[];
  /** The order of the training batches in each epoch. */
  readonly orders: readonly (readonly number[])[];
}

/** The job file; peers read the same one. */
export interface BucketJob extends ModelJob {
  /** A {@link BucketFile}. */
  readonly pairs: string;
  /** Most tokens in a batch; see `cutBuckets`. */
  readonly tokens: number;
  readonly epochs: number;
  /** Number of steps in an epoch; null: all batches. */
  readonly steps: number | null;
  /** Whether the loss of the held-out pairs is computed after each epoch. */
  readonly validate: boolean;
}

/** An epoch of a participant. */
export interface BucketEpoch {
  /** Without validation. */
  readonly seconds: number;
  /** Mean of the steps' losses, by token. */
  readonly trainingLoss: number;
  /** Mean over all target tokens of the held-out pairs, without dropout. */
  readonly validationLoss: number | null;
  /** Number of those tokens. */
  readonly validationTokens: number | null;
}

/** The JSON line that a participant prints; the lists of steps run through all epochs. */
export interface BucketResult extends TrainResult {
  readonly epochs: readonly BucketEpoch[];
}
