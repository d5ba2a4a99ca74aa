import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  canCast,
  cat,
  dtypes,
  ones,
  promoteTypes,
  resultType,
  tensor,
  where,
  type DType,
  type Tensor,
} from 'torchformer';

type Pairs = Record<DType, Record<DType, DType | null>>;
type Each = Record<DType, DType | null>;

interface Table {
  torch: string;
  promoteTypes: Pairs;
  canCast: Record<DType, Record<DType, boolean>>;
  add: Pairs;
  addZeroDim: Pairs;
  div: Pairs;
  cat: Pairs;
  where: Pairs;
  mulNumber: Record<DType, Record<'integer' | 'fraction' | 'boolean', DType>>;
  sum: Each;
  mean: Each;
  exp: Each;
  cumprod: Each;
}

/** What PyTorch answers; made by make_promotion.py beside it. */
const expected = JSON.parse(
  readFileSync(new URL('./fixtures/promotion.json', import.meta.url), 'utf8'),
) as Table;

const dtypeOf = (run: () => Tensor): DType | null => {
  try {
    return run().dtype;
  } catch {
    return null;
  }
};
const pairs = <T>(run: (a: DType, b: DType) => T) =>
  Object.fromEntries(dtypes.map((a) => [a, Object.fromEntries(dtypes.map((b) => [b, run(a, b)]))]));
const each = (run: (x: Tensor) => Tensor) =>
  Object.fromEntries(dtypes.map((dtype) => [dtype, dtypeOf(() => run(ones([1], { dtype })))]));
const one = (dtype: DType) => ones([1], { dtype });

describe('dtypes of results are those of PyTorch 2.13, for all pairs', () => {
  const tables: [keyof Table, Record<string, unknown>][] = [
    ['promoteTypes', pairs(promoteTypes)],
    ['canCast', pairs(canCast)],
    ['add', pairs((a, b) => dtypeOf(() => one(a).add(one(b))))],
    ['addZeroDim', pairs((a, b) => dtypeOf(() => one(a).add(ones([], { dtype: b }))))],
    ['div', pairs((a, b) => dtypeOf(() => one(a).div(one(b))))],
    ['cat', pairs((a, b) => dtypeOf(() => cat([one(a), one(b)])))],
    ['where', pairs((a, b) => dtypeOf(() => where(tensor([true]), one(a), one(b))))],
    ['sum', each((x) => x.sum())],
    ['mean', each((x) => x.mean())],
    ['exp', each((x) => x.exp())],
    ['cumprod', each((x) => x.cumprod(0))],
  ];
  it.each(tables)('%s', (name, found) => {
    expect(found).toEqual(expected[name]);
  });

  it('with numbers', () => {
    for (const dtype of dtypes) {
      const found = {
        integer: one(dtype).mul(2).dtype,
        fraction: one(dtype).mul(2.5).dtype,
        boolean: one(dtype).mul(true).dtype,
      };
      expect(found, dtype).toEqual(expected.mulNumber[dtype]);
    }
  });

  it('resultType tells what an operation would give', () => {
    expect(resultType(one('int64'), 1)).toBe('int64');
    expect(resultType(one('int64'), 1.5)).toBe('float32');
    expect(resultType(1.5, one('float16'))).toBe('float16');
    expect(resultType(one('int32'), ones([], { dtype: 'int64' }))).toBe('int32');
    expect(resultType(1, 2)).toBe('int64');
    expect(() => promoteTypes('int64', 'long' as never)).toThrow(/promoteTypes: b must be one of/);
  });
});
