/** Repeated passes over the same batches, each with its own order. */
import type { TokenPair } from '../pairs.js';
import type { Batch } from './batch.js';

/**
 * The batches of a dataset. Each loop over them is a pass with new tensors, which the caller
 * disposes, and with `shuffle` it has its own order.
 */
export interface Batches extends Iterable<Batch> {
  /**
   * Number of batches in the pass that began last, or in the first pass before any has begun. It is
   * the same in all passes, except with `tokens` and `shuffle`.
   */
  readonly length: number;
}

/** The groups from which the batches of a pass are made. */
type GroupsOf = (pass: number) => readonly Group[];
type Group = readonly TokenPair[];

/** The pairs of each batch of a pass, known before any batch is made. */
export interface PassPlan {
  readonly groups: readonly Group[];
  readonly make: (group: Group) => Batch;
}

const plans = new WeakMap<object, () => PassPlan>();

/** The plan of the first pass, without beginning it; null if the batches were made by other means. */
export function planOf(batches: object): PassPlan | null {
  return plans.get(batches)?.() ?? null;
}

/**
 * Makes batches for which each loop is the next pass.
 *
 * @param first the number of the first pass
 */
export function passesOver(
  groupsOf: GroupsOf,
  make: (group: Group) => Batch,
  first: number,
): Batches {
  let next = first;
  // Computed on first use, because shuffling millions of pairs is slow.
  let groups: readonly Group[] | null = null;
  const batches: Batches = {
    get length() {
      groups ??= groupsOf(first);
      return groups.length;
    },
    [Symbol.iterator]() {
      const pass = next++;
      if (groups === null || pass !== first) groups = groupsOf(pass);
      return made(groups, make);
    },
  };
  plans.set(batches, () => ({ groups: groupsOf(first), make }));
  return batches;
}

function* made(groups: readonly Group[], make: (group: Group) => Batch): Generator<Batch> {
  for (const group of groups) yield make(group);
}

const byEpoch = new WeakMap<object, (epoch: number) => Batches>();

/** Batches whose passes count from 0, or from the epoch passed to {@link inEpoch}. */
export function passesByEpoch(groupsOf: GroupsOf, make: (group: Group) => Batch): Batches {
  const batches = passesOver(groupsOf, make, 0);
  byEpoch.set(batches, (epoch) => passesOver(groupsOf, make, epoch));
  return batches;
}

/**
 * The batches of one epoch. The trainer numbers the epochs, because a count of loops would restart
 * with every object, and so would the orders after a restart or from a function such as
 * `() => batches(dataset, { shuffle: true })`.
 *
 * @returns the source itself if it was made with an explicit epoch or by other means
 */
export function inEpoch<T extends object>(source: T, epoch: number): T | Batches {
  return byEpoch.get(source)?.(epoch) ?? source;
}
