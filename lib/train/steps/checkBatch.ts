import type { Batch } from '../../data/batching/batch.js';
import { PackedSequences } from '../../nn/packed/packedSequences.js';
import { checkInstance, checkInteger, checkObject } from '../../runtime/arguments.js';
import { checkIdRange, indicesOf } from '../../nn/idRange.js';
import { modelVocabulary } from '../../nn/model/modelVocabulary.js';
import type { Transformer } from '../../nn/model/transformer.js';
import { checkTensor, formatShape } from '../../tensor/check.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';

const packedNames = ['src', 'tgt', 'tgtY'] as const;
const sequenceNames = ['srcSequences', 'tgtSequences'] as const;
const tensorNames = ['src', 'tgt', 'tgtY', 'srcMask', 'tgtMask'] as const;

/** @throws TypeError, RangeError naming the part that is missing or invalid */
export function checkBatch(owner: string, name: string, value: unknown): asserts value is Batch {
  const batch = checkObject(owner, name, value, 'a Batch such as batches(dataset) yields');
  for (const part of tensorNames) checkTensor(owner, `${name}.${part}`, batch[part]);
  checkInteger(owner, `${name}.ntokens`, batch['ntokens'], 0);
  // Read once: the getter of makeBatch checks the tensors each time.
  const given = batch['packed'];
  if (given === undefined) return;
  const packed = checkObject(owner, `${name}.packed`, given, 'a PackedBatch');
  for (const part of packedNames) checkTensor(owner, `${name}.packed.${part}`, packed[part]);
  for (const part of sequenceNames) {
    const maker = 'makeBatch';
    checkInstance(owner, `${name}.packed.${part}`, packed[part], PackedSequences, maker);
  }
}

/**
 * Refuses ids outside the model's vocabularies.
 *
 * @throws RangeError naming the id, the tensor, the indices `[pair, position]` and the pair's row
 */
export function checkBatchIds(owner: string, model: Transformer, batch: Batch, pad: number): void {
  const { src, tgt } = modelVocabulary(model);
  const check = (name: 'src' | 'tgt' | 'tgtY', ids: Tensor, count: number) => {
    checkIdRange(owner, `batch.${name}`, ids, count, (index) => {
      const place = indicesOf(index, ids.shape);
      // A batch that was not made by makeBatch may have no rows.
      const row = (batch.rows as readonly number[] | undefined)?.[place[0] as number];
      return formatShape(place) + (row === undefined ? '' : ` (the pair of row ${row})`);
    });
  };
  tidy(() => {
    check('src', batch.src, src);
    check('tgt', batch.tgt, tgt);
    // Padding is ignored, whatever its id.
    check('tgtY', batch.tgtY.mul(batch.tgtY.ne(pad)), tgt);
  });
}
