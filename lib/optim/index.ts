/** Optimizers, learning-rate schedules and gradient clipping. */
export { Adafactor, type AdafactorSettings } from './adafactor.js';
export { Adam, AdamW, type AdamSettings } from './adam.js';
export { clipGradNorm, type ClipGradNormOptions } from './clipGradNorm.js';
export {
  Optimizer,
  type BaseSettings,
  type OptimizerState,
  type ParameterGroup,
  type ParameterSource,
  type ParameterState,
  type Update as ParameterUpdate,
} from './optimizer.js';
export {
  constant,
  cosine,
  inverseSquareRoot,
  linearDecay,
  noam,
  warmup,
  type DecayOptions,
  type InverseSquareRootOptions,
  type NoamOptions,
  type Schedule,
} from './schedule.js';
export { SGD, type SGDSettings } from './sgd.js';
