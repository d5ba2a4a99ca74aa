/** Training: the loop, its metrics and its reports. */
export type { BatchIterable, BatchSource } from './batchSource.js';
export {
  ExponentialMovingAverage,
  type ExponentialMovingAverageOptions,
  type MovingAverageState,
} from './averaging/exponentialMovingAverage.js';
export { evaluate, type EvaluateOptions, type Evaluation } from './evaluate.js';
export { describeEstimate } from './estimate/describeEstimate.js';
export type {
  MeasuredBatch,
  MemoryEstimate,
  TimeEstimate,
  TrainingEstimate,
} from './estimate/estimate.js';
export { estimateTraining, type EstimateTrainingOptions } from './estimate/estimateTraining.js';
export {
  historyJson,
  type EpochRecord,
  type History,
  type SampleTranslation,
  type StepRecord,
  type ValidationBatchRecord,
  type ValidationRecord,
} from './run/history.js';
export type {
  CheckpointEvent,
  EndEvent,
  StartEvent,
  StepEvent,
  TrainingEvents,
  TrainingListener,
  ValidationBatchEvent,
} from './run/events.js';
export { tokenLossSum, type TokenLossOptions } from './steps/tokenLoss.js';
export { lossCurve, type LossCurveOptions } from './run/lossCurve.js';
export { BestModel, TokenMean, type BestEpoch } from './metrics.js';
export { ProgressBar, type ProgressStream } from './run/progress.js';
export type { BestValidation, Selection } from './run/runProgress.js';
export type { SampleText } from './samples.js';
export type { ScoreSettings } from './validation.js';
export { Trainer } from './trainer.js';
export type { FitOptions, FitResult, TrainerOptions, TrainingOptimizer } from './trainerOptions.js';
export { runInWorker, type RunInWorkerOptions, type WorkerContext } from './worker/runInWorker.js';
