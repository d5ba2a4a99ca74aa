import type { Batch } from '../data/batch.js';
import { checkInteger, checkObject } from '../runtime/options.js';
import { checkTensor } from '../tensor/check.js';

const tensorNames = ['src', 'tgt', 'tgtY', 'srcMask', 'tgtMask'] as const;

/** @throws TypeError, RangeError naming the part that is none of a batch */
export function checkBatch(owner: string, name: string, value: unknown): asserts value is Batch {
  const batch = checkObject(owner, name, value, 'a Batch such as batches(dataset) gives');
  for (const part of tensorNames) checkTensor(owner, `${name}.${part}`, batch[part]);
  checkInteger(owner, `${name}.ntokens`, batch['ntokens'], 0);
}
