/**
 * What happens during a training run, as events: the progress line, the records, the stopper and
 * whatever a user adds are listeners.
 */
import { checkChoice, checkFunction, checkObject } from '../../runtime/arguments.js';
import type { EpochRecord, StepRecord, ValidationRecord } from './history.js';

/** The run is about to take its first step, or to continue. */
export interface StartEvent {
  /** Steps taken before: 0, or those of the run that is continued. */
  readonly step: number;
  /** Complete epochs before. */
  readonly epoch: number;
  /** Seconds of training before. */
  readonly seconds: number;
  /** The last epoch of this training; Infinity if another limit ends it. */
  readonly epochs: number;
  /** The last step of this training; Infinity if another limit ends it. */
  readonly steps: number;
  /** Trainable parameters of the model. */
  readonly parameters: number;
  /** Folder of the run; null if nothing is written. */
  readonly out: string | null;
}

/** An optimizer step was taken. */
export interface StepEvent extends StepRecord {
  /** Number of batches of this epoch processed so far. */
  readonly batch: number;
  /** Number of batches in this epoch; null if unknown. */
  readonly batches: number | null;
  /** Token-mean loss of this epoch so far. */
  readonly epochLoss: number;
  /** Target tokens of this epoch so far. */
  readonly epochTokens: number;
}

/** A batch of the validation data was evaluated. */
export interface ValidationBatchEvent {
  /** Steps taken before it. */
  readonly step: number;
  /** The epoch that it belongs to; counts from 1. */
  readonly epoch: number;
  /** Counts from 1. */
  readonly batch: number;
  /** Number of batches; null if unknown. */
  readonly batches: number | null;
  /** Token-mean loss so far. */
  readonly loss: number;
  /** Target tokens so far. */
  readonly tokens: number;
}

/** A model was saved. */
export interface CheckpointEvent {
  /** The step after which its state was copied. */
  readonly step: number;
  /** Complete epochs at that step. */
  readonly epoch: number;
  /** `'last'`: the state to resume from; `'best'`: the best model; `'kept'`: one in `checkpoints/`. */
  readonly kind: 'last' | 'best' | 'kept';
  /** The model folder. */
  readonly folder: string;
  /** Bytes written. */
  readonly bytes: number;
  /** Seconds from the copy of the state to the complete folder; training continues meanwhile. */
  readonly seconds: number;
}

/** The run ended, for whatever reason. */
export interface EndEvent {
  /** Steps taken in all. */
  readonly step: number;
  /** Complete epochs in all. */
  readonly epoch: number;
  /** Seconds of training in all. */
  readonly seconds: number;
  /**
   * `'finished'`: all epochs, steps or minutes; `'patience'`: no progress for too long; `'aborted'`:
   * by the signal; `'error'`: by an error, which `fit` throws.
   */
  readonly reason: 'finished' | 'patience' | 'aborted' | 'error';
  /** What `fit` throws, if the reason is `'error'`. */
  readonly error?: unknown;
}

/** The events of a training run, by name. */
export interface TrainingEvents {
  /** Before the first step. */
  start: StartEvent;
  /** After each optimizer step. */
  step: StepEvent;
  /** After each batch of a validation. */
  validationBatch: ValidationBatchEvent;
  /** After each validation. */
  validation: ValidationRecord;
  /** After each pass over the training data, its validation included. */
  epoch: EpochRecord;
  /** When a model is complete on the disk. */
  checkpoint: CheckpointEvent;
  /** A text for the user: a warning or a sample translation. */
  message: string;
  /** At the end, also after an error. */
  end: EndEvent;
}

/**
 * Handles some of the events of a run: an object with a method for each, as many as it needs. Training
 * waits for a promise, except for those of `step` and `validationBatch`, which must be fast: they run
 * between steps. An error of a listener ends the training.
 */
export type TrainingListener = {
  [Name in keyof TrainingEvents]?: (event: TrainingEvents[Name]) => void | Promise<void>;
};

/** The names of all events. */
export const eventNames: readonly (keyof TrainingEvents)[] = [
  'start',
  'step',
  'validationBatch',
  'validation',
  'epoch',
  'checkpoint',
  'message',
  'end',
];

/** Passes events to listeners, in the order in which they were added. */
export class EventListeners {
  readonly #listeners: TrainingListener[] = [];

  /**
   * @returns a function that removes the listener
   * @throws TypeError if it has no method for an event, or one that is not a function
   */
  add(owner: string, listener: TrainingListener): () => void {
    checkListener(owner, 'listener', listener);
    this.#listeners.push(listener);
    return () => {
      const index = this.#listeners.indexOf(listener);
      if (index >= 0) this.#listeners.splice(index, 1);
    };
  }

  /** Calls the listeners one after the other and waits for them. */
  async emit<Name extends keyof TrainingEvents>(
    name: Name,
    event: TrainingEvents[Name],
  ): Promise<void> {
    for (const listener of [...this.#listeners]) await listener[name]?.(event);
  }

  /** Calls the listeners of an event between steps, without waiting. */
  emitNow<Name extends 'step' | 'validationBatch' | 'message'>(
    name: Name,
    event: TrainingEvents[Name],
  ): void {
    for (const listener of this.#listeners) void listener[name]?.(event);
  }
}

/** @throws TypeError if `value` handles no event */
export function checkListener(owner: string, name: string, value: unknown): void {
  const expected = `an object with methods such as step(event); events: ${eventNames.join(', ')}`;
  const listener = checkObject(owner, name, value, expected);
  const handled = eventNames.filter((event) => listener[event] !== undefined);
  if (handled.length === 0) throw new TypeError(`${owner}: ${name} must be ${expected}`);
  for (const event of handled) checkFunction(owner, `${name}.${event}`, listener[event]);
}

/** @throws TypeError, RangeError if `value` is not the name of an event */
export function checkEventName(owner: string, value: unknown): keyof TrainingEvents {
  return checkChoice(owner, 'event', value, eventNames);
}
