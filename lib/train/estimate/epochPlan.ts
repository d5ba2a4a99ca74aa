/** The sizes of the batches of an epoch, and the batches themselves on demand. */
import { makeBatch, type Batch } from '../../data/batching/batch.js';
import { inEpoch, planOf, type PassPlan } from '../../data/batching/passes.js';
import type { TokenPair } from '../../data/pairs.js';
import type { Tensor } from '../../tensor/tensor.js';
import { BatchReader, checkBatchSource, type BatchSource } from '../batchSource.js';
import { inScope } from '../inScope.js';

/** The size of one batch. */
export interface BatchSize {
  /** Its position in the epoch, from 0. */
  readonly index: number;
  /** Number of pairs. */
  readonly pairs: number;
  /** Tokens that the model reads: of source and target, with padding if it cannot run without. */
  readonly tokens: number;
}

/** The batches of an epoch. */
export interface EpochPlan {
  /** Sizes of the batches with a target. */
  readonly sizes: readonly BatchSize[];
  /** Makes a batch again; call it in a scope. */
  batch(index: number): Promise<Batch>;
}

/**
 * Batches from `batches` are not made for this; others are made once and disposed of.
 *
 * @param packs whether the model runs without padding
 * @throws TypeError if the source can be iterated only once, or has no batch
 */
export async function planEpoch(
  owner: string,
  source: BatchSource,
  packs: boolean,
): Promise<EpochPlan> {
  checkBatchSource(owner, 'batches', source);
  if (typeof source !== 'function' && 'next' in source) {
    throw new TypeError(
      `${owner}: batches can be iterated only once, and training needs them; pass a function that ` +
        'returns an iterable for each epoch',
    );
  }
  const given = typeof source === 'function' ? source(1) : source;
  const planned = planOf(inEpoch(given, 1));
  const plan = planned === null ? await readPlan(owner, source, packs) : knownPlan(planned, packs);
  if (plan.sizes.length > 0) return plan;
  throw new TypeError(`${owner}: there is no batch with a target in batches`);
}

function knownPlan({ groups, make }: PassPlan, packs: boolean): EpochPlan {
  const sizes = groups.map((pairs, index) => ({
    index,
    pairs: pairs.length,
    tokens: tokensOf(pairs, packs),
  }));
  const batch = (index: number) => Promise.resolve(make(groups[index] ?? []));
  return { sizes, batch };
}

function tokensOf(pairs: readonly TokenPair[], packs: boolean): number {
  let [sum, longestSource, longestTarget] = [0, 0, 0];
  for (const { src, tgt } of pairs) {
    sum += src.length + tgt.length - 1;
    longestSource = Math.max(longestSource, src.length);
    longestTarget = Math.max(longestTarget, tgt.length - 1);
  }
  return packs ? sum : pairs.length * (longestSource + longestTarget);
}

async function readPlan(owner: string, source: BatchSource, packs: boolean): Promise<EpochPlan> {
  const sizes: BatchSize[] = [];
  const reader = new BatchReader(owner, 'batches', source, 1);
  const sizeOfNext = () =>
    inScope(async () => {
      const [batch] = await reader.take(1);
      return batch === undefined
        ? null
        : {
            pairs: batch.src.shape[0] ?? 0,
            tokens: tokensIn(batch, packs),
            targets: batch.ntokens,
          };
    });
  let index = 0;
  for (let next = await sizeOfNext(); next !== null; next = await sizeOfNext()) {
    const { targets, ...size } = next;
    if (targets > 0) sizes.push({ index, ...size });
    index++;
  }
  await reader.close();
  return { sizes, batch: (wanted) => batchAt(owner, source, wanted) };
}

/** Tokens that the model reads, see {@link BatchSize}. */
export function tokensIn(batch: Batch, packs: boolean): number {
  // Read once: the getter checks the batch's tensors each time.
  const packed = packs ? batch.packed : undefined;
  const { src, tgt } = packed ?? batch;
  return src.numel + tgt.numel;
}

async function batchAt(owner: string, source: BatchSource, index: number): Promise<Batch> {
  const reader = new BatchReader(owner, 'batches', source, 1);
  try {
    for (let passed = 0; passed < index; passed++) {
      await inScope(async () => void (await reader.take(1)));
    }
    const [batch] = await reader.take(1);
    if (batch !== undefined) return batch;
    throw new TypeError(
      `${owner}: batches has no batch ${index + 1} when it is iterated again; pass a function that ` +
        'returns the same batches each time',
    );
  } finally {
    await reader.close();
  }
}

/** The first pairs of a batch as a batch of their own, without padding if the batch can be without. */
export function firstPairs(batch: Batch, count: number, pad: number): Batch {
  const [src, tgt, tgtY, srcMask, tgtMask] = (
    ['src', 'tgt', 'tgtY', 'srcMask', 'tgtMask'] as const
  ).map((name) => batch[name].narrow(0, 0, count)) as [Tensor, Tensor, Tensor, Tensor, Tensor];
  if (batch.packed === undefined) {
    const ntokens = Number(tgtY.ne(pad).sum().item());
    return { ...batch, src, tgt, tgtY, srcMask, tgtMask, ntokens };
  }
  // Packed sequences do not contain the pad id.
  const idsOf = (tensor: Tensor) =>
    (tensor.toArray() as (number | bigint)[][]).map((row) =>
      row.map(Number).filter((id) => id !== pad),
    );
  const [sources, inputs, targets] = [idsOf(src), idsOf(tgt), idsOf(tgtY)];
  const pairs = sources.map((ids, row) => ({
    src: ids,
    tgt: [...(inputs[row] ?? []), ...(targets[row] ?? []).slice(-1)],
    row: batch.rows[row] ?? row,
  }));
  return makeBatch(pairs, pad);
}
