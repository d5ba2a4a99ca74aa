/** The models that a training run keeps in `checkpoints/`. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  checkChoice,
  checkInteger,
  checkPath,
  checkRequiredOptions,
  orDefault,
} from '../runtime/arguments.js';
import { counted } from '../runtime/counted.js';
import { readConfig } from './openModelFolder.js';
import { checkpointFault } from './safetensorsHeader.js';

/** A model in the `checkpoints/` of a run, with what its config says of the run. */
export interface RunCheckpoint {
  /** The model folder. */
  readonly folder: string;
  /** Number of optimizer steps. */
  readonly step: number;
  /** Validation loss; null without one. */
  readonly loss: number | null;
  /** BLEU of the validation; null if it was not computed. */
  readonly bleu: number | null;
  /** chrF of the validation; null if it was not computed. */
  readonly chrf: number | null;
  /** What the run selected its best model by, higher is better; null without validation. */
  readonly score: number | null;
}

/** By what the best models are chosen: the run's own choice, the lowest loss, or the highest BLEU or chrF. */
export type CheckpointOrder = 'score' | 'loss' | 'bleu' | 'chrf';

/** Options of {@link selectCheckpoints}: either `last` or `best`. */
export interface SelectCheckpointsOptions {
  /** number of the latest models */
  last?: number;
  /** number of the best models */
  best?: number;
  /** what the best are chosen by; default `'score'`, as in the run, or the loss if it saved no score */
  by?: CheckpointOrder;
}

const orders: readonly CheckpointOrder[] = ['score', 'loss', 'bleu', 'chrf'];

/**
 * Lists the models that a training run keeps (`keepLast`, `keepBest`), in the order of their steps.
 *
 * @throws TorchError ERR_CHECKPOINT if the run has none
 */
export async function listCheckpoints(run: string): Promise<RunCheckpoint[]> {
  checkPath('listCheckpoints', 'run', run);
  const parent = join(run, 'checkpoints');
  let names: string[];
  try {
    names = await readdir(parent);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw checkpointFault(
      run,
      code === 'ENOENT' ? noneKept('has no checkpoints/') : message,
      error,
    );
  }
  const found: RunCheckpoint[] = [];
  for (const name of names.sort()) {
    // Temporary folders of saves have other names.
    const [, digits] = /^(?:step-)?(\d+)$/.exec(name) ?? [];
    if (digits === undefined) continue;
    const folder = join(parent, name);
    const { training } = await readConfig(folder);
    const number = (key: string) => {
      const value = training?.[key];
      return typeof value === 'number' ? value : null;
    };
    found.push({
      folder,
      step: number('step') ?? Number(digits),
      loss: number('validationLoss'),
      bleu: number('bleu'),
      chrf: number('chrf'),
      score: number('score'),
    });
  }
  if (found.length === 0) throw checkpointFault(run, noneKept('has no model in checkpoints/'));
  return found.sort((a, b) => a.step - b.step);
}

/**
 * The last or the best models that a training run keeps, in the order of their steps, for
 * `averageModels`. Of equally good ones, the earlier are taken.
 *
 * @throws TorchError ERR_CHECKPOINT if the run keeps fewer models, or fewer with the value to choose by
 * @throws TypeError, RangeError unless exactly one of `last` and `best` is given
 */
export async function selectCheckpoints(
  run: string,
  options: SelectCheckpointsOptions,
): Promise<RunCheckpoint[]> {
  const owner = 'selectCheckpoints';
  checkRequiredOptions(owner, options, ['last', 'best', 'by'], 'last or best');
  const { last, best, by } = options;
  if ((last === undefined) === (best === undefined)) {
    throw new TypeError(`${owner}: pass either last or best`);
  }
  if (last !== undefined && by !== undefined) {
    throw new TypeError(`${owner}: by is for best; the last are chosen by their steps`);
  }
  const given = last === undefined ? 'best' : 'last';
  const count = checkInteger(owner, given, options[given], 1);
  const order = checkChoice(owner, 'by', orDefault(by, 'score'), orders);
  const all = await listCheckpoints(run);
  const usable = last === undefined ? ranked(all, order) : [...all].reverse();
  if (usable.length < count) {
    const what =
      last === undefined ? ` with a validation ${order === 'score' ? 'score' : order}` : '';
    throw checkpointFault(
      run,
      `it keeps only ${counted(usable.length, 'model')}${what} in checkpoints/, not ${count}`,
    );
  }
  return usable.slice(0, count).sort((a, b) => a.step - b.step);
}

/** The best first. */
function ranked(all: readonly RunCheckpoint[], by: CheckpointOrder): RunCheckpoint[] {
  const key = by === 'score' && all.every(({ score }) => score === null) ? 'loss' : by;
  const sign = key === 'loss' ? 1 : -1;
  return all
    .flatMap((checkpoint) => {
      const value = checkpoint[key];
      return value === null ? [] : [{ checkpoint, cost: sign * value }];
    })
    .sort((a, b) => a.cost - b.cost || a.checkpoint.step - b.checkpoint.step)
    .map(({ checkpoint }) => checkpoint);
}

function noneKept(fault: string): string {
  return `${fault}; a run keeps models there with keepLast or keepBest`;
}
