/** Rows that are longer than a model's position tables. */
import { makeBatch, type Batch } from '../data/batching/batch.js';
import type { TokenPair } from '../data/pairs.js';
import { sourceLimit, targetLimit } from '../decode/positionLimit.js';
import type { Transformer } from '../nn/model/transformer.js';
import type { Tensor } from '../tensor/tensor.js';

/** A batch without the rows that are too long. */
export interface ShortRows {
  /** Null if all rows are too long. */
  readonly batch: Batch | null;
  /** The numbers of the rows that were removed. */
  readonly leftOut: readonly number[];
}

/** @param pad the id that pads the shorter sequences */
export function withoutLongRows(model: Transformer, batch: Batch, pad: number): ShortRows {
  const [source, target] = [sourceLimit(model), targetLimit(model)];
  const [sourceWidth = 0, targetWidth = 0] = [batch.src.shape[1], batch.tgt.shape[1]];
  if (sourceWidth <= source && targetWidth <= target) return { batch, leftOut: [] };
  const first = rowsOf(batch.tgt);
  const rest = rowsOf(batch.tgtY);
  const pairs = rowsOf(batch.src).map((src, index): TokenPair => {
    const tgt = [...(first[index] ?? []).slice(0, 1), ...trimmed(rest[index] ?? [], pad)];
    return { src: trimmed(src, pad), tgt, row: batch.rows[index] ?? index + 1 };
  });
  const fits = ({ src, tgt }: TokenPair) => src.length <= source && tgt.length - 1 <= target;
  const kept = pairs.filter(fits);
  return {
    batch: kept.length === 0 ? null : makeBatch(kept, pad, batch.src.device),
    leftOut: pairs.filter((pair) => !fits(pair)).map(({ row }) => row),
  };
}

function rowsOf(ids: Tensor): number[][] {
  return (ids.toArray() as (number | bigint)[][]).map((row) => row.map(Number));
}

function trimmed(ids: readonly number[], pad: number): number[] {
  let end = ids.length;
  while (end > 0 && ids[end - 1] === pad) end--;
  return ids.slice(0, end);
}
