/** Loops over the same batches, each of which is a pass with an order of its own. */
import type { Batch } from './batch.js';

/**
 * The batches of a dataset. Each loop over them is a pass with fresh tensors, which the caller
 * disposes, and with `shuffle` it has an order of its own.
 */
export interface Batches extends Iterable<Batch> {
  /**
   * Number of batches: of the pass that began last, or of the first one before that. It is the same
   * in all passes, except with `tokens` and `shuffle`.
   */
  readonly length: number;
}

/** What each batch of a pass is made from. */
type GroupsOf<Group> = (pass: number) => readonly Group[];

/**
 * Batches of which each loop is one more pass.
 *
 * @param first the number of the first pass
 */
export function passesOver<Group>(
  groupsOf: GroupsOf<Group>,
  make: (group: Group) => Batch,
  first: number,
): Batches {
  let next = first;
  // Made when first asked for: shuffling millions of pairs takes its time.
  let groups: readonly Group[] | null = null;
  return {
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
}

function* made<Group>(groups: readonly Group[], make: (group: Group) => Batch): Generator<Batch> {
  for (const group of groups) yield make(group);
}

const byEpoch = new WeakMap<object, (epoch: number) => Batches>();

/** Batches whose passes count from 0, or from the epoch of whoever reads them with `inEpoch`. */
export function passesByEpoch<Group>(
  groupsOf: GroupsOf<Group>,
  make: (group: Group) => Batch,
): Batches {
  const batches = passesOver(groupsOf, make, 0);
  byEpoch.set(batches, (epoch) => passesOver(groupsOf, make, epoch));
  return batches;
}

/**
 * The batches of one epoch. A training numbers its epochs itself: counting loops would begin anew
 * with every object, and so would the orders after a restart or from a function such as
 * `() => batches(dataset, { shuffle: true })`.
 *
 * @returns the source itself unless it leaves its epoch open
 */
export function inEpoch<T extends object>(source: T, epoch: number): T | Batches {
  return byEpoch.get(source)?.(epoch) ?? source;
}
