/** Averages of a model's weights. */
export {
  ExponentialMovingAverage,
  type ExponentialMovingAverageOptions,
  type MovingAverageState,
} from './exponentialMovingAverage.js';
