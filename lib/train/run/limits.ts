/** When a training ends, validates and saves. */
import type { FitOptions } from '../trainerOptions.js';
import type { EndEvent } from './events.js';
import type { RunProgress } from './runProgress.js';
import type { Settings } from './settings.js';

/** Counts that end a training, over the whole run. */
export class Limits {
  readonly epochs: number;
  readonly steps: number;
  readonly minutes: number;
  readonly patience: number;

  /** @param from where the training began: limits of a second `fit` count from there */
  constructor(options: FitOptions, from: { epochs: number; steps: number; minutes: number }) {
    const { epochs = Infinity, steps = Infinity, minutes = Infinity, patience } = options;
    this.epochs = from.epochs + epochs;
    this.steps = from.steps + steps;
    this.minutes = from.minutes + minutes;
    this.patience = patience ?? Infinity;
  }

  /** Why the training is over; null if it is not. */
  reached(progress: RunProgress, seconds: number): EndEvent['reason'] | null {
    const { epoch, step, validationsSinceBest } = progress;
    if (epoch >= this.epochs || step >= this.steps || seconds >= 60 * this.minutes) {
      return 'finished';
    }
    return validationsSinceBest >= this.patience ? 'patience' : null;
  }

  /** For the comparison of a resumed run. */
  get settings(): Settings {
    const { epochs, steps, minutes, patience } = this;
    const limits = Object.entries({ epochs, steps, minutes, patience });
    return Object.fromEntries(limits.filter(([, limit]) => Number.isFinite(limit)));
  }
}
