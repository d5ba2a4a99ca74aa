/** What is known about a training run before its first step. */

/** The result of `estimateTraining`. */
export interface TrainingEstimate {
  /** Numbers of parameters; a tied one counts once. */
  readonly parameters: { readonly all: number; readonly trainable: number };
  /** What the run takes of the memory, and what it can have. */
  readonly memory: MemoryEstimate;
  /** Null without measurement. */
  readonly time: TimeEstimate | null;
}

/** Memory of the device that the model is on, in bytes. */
export interface MemoryEstimate {
  /** Of parameters and buffers. */
  readonly weights: number;
  /**
   * Of the trainable parameters. Gradients of embeddings that have only the rows in use are those of
   * the largest batch; without measurement they are left out.
   */
  readonly gradients: number;
  /** State of the optimizer after its first update; null if the optimizer cannot tell. */
  readonly optimizer: number | null;
  /** Name of the optimizer's class. */
  readonly optimizerName: string;
  /** Averages of the weights; 0 without. */
  readonly averages: number;
  /** Values saved for the backward pass of the largest batch; null without measurement. */
  readonly activations: number | null;
  /** The batch that `activations` are of; null without measurement. */
  readonly largestBatch: MeasuredBatch | null;
  /** Sum of all that is known. */
  readonly total: number;
  /** What the run can have: memory that is free, and that of the weights, which are there already. */
  readonly available: number;
}

/** A batch that was measured. */
export interface MeasuredBatch {
  /** Number of sentence pairs. */
  readonly pairs: number;
  /** Tokens of source and target, with padding if the model cannot run without. */
  readonly tokens: number;
  /** False if it would not fit: then its activations are extrapolated from smaller batches. */
  readonly wasRun: boolean;
}

/** Time of the training steps, in seconds; validation, saving and translated samples come on top. */
export interface TimeEstimate {
  /** Forward and backward pass, for each token of source and target, from batches of median size. */
  readonly token: number;
  /** The optimizer's update, measured on copies of some parameters; 0 if it cannot be copied. */
  readonly update: number;
  /** One epoch. */
  readonly epoch: number;
  /** Optimizer steps of one epoch. */
  readonly stepsPerEpoch: number;
  /** Until the first of the limits `epochs`, `steps` and `minutes`; null without one. */
  readonly total: number | null;
}
