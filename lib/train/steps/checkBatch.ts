import type { Batch } from '../../data/batching/batch.js';
import { PackedSequences } from '../../nn/packed/packedSequences.js';
import { checkInstance, checkInteger, checkObject } from '../../runtime/options.js';
import { checkTensor } from '../../tensor/check.js';

const packedNames = ['src', 'tgt', 'tgtY'] as const;
const sequenceNames = ['srcSequences', 'tgtSequences'] as const;
const tensorNames = ['src', 'tgt', 'tgtY', 'srcMask', 'tgtMask'] as const;

/** @throws TypeError, RangeError naming the part that is none of a batch */
export function checkBatch(owner: string, name: string, value: unknown): asserts value is Batch {
  const batch = checkObject(owner, name, value, 'a Batch such as batches(dataset) gives');
  for (const part of tensorNames) checkTensor(owner, `${name}.${part}`, batch[part]);
  checkInteger(owner, `${name}.ntokens`, batch['ntokens'], 0);
  // Once: a getter of makeBatch's looks at the tensors each time.
  const given = batch['packed'];
  if (given === undefined) return;
  const packed = checkObject(owner, `${name}.packed`, given, 'a PackedBatch');
  for (const part of packedNames) checkTensor(owner, `${name}.packed.${part}`, packed[part]);
  for (const part of sequenceNames) {
    const wayOut = 'makeBatch';
    checkInstance(owner, `${name}.packed.${part}`, packed[part], PackedSequences, wayOut);
  }
}
