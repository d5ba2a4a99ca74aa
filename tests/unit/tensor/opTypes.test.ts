import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { ops, tensor, zeros, type DType, type Tensor } from 'torchformer';

describe('types of the raw ops', () => {
  it('are in step with the schemas of the loaded libtorch and of the addon', () => {
    const script = fileURLToPath(new URL('../../../scripts/generateOpTypes.mjs', import.meta.url));
    expect(() => execFileSync(process.execPath, [script, '--check'])).not.toThrow();
  });

  // The type assertions are checked by the compiler (npm run lint).
  it('know arguments and results', () => {
    const x = tensor([3, 1, 2]);
    const [values, indices] = ops.aten.topk(x, 2);
    expectTypeOf(values).toEqualTypeOf<Tensor>();
    expect([values.toArray(), indices.toArray()]).toEqual([
      [3, 2],
      [0, 2],
    ]);
    expectTypeOf(ops.aten.equal(x, x)).toEqualTypeOf<boolean>();
    expectTypeOf(ops.aten.unbind.int(x)).toEqualTypeOf<Tensor[]>();
    expectTypeOf(ops.aten.promote_types('int64', 'float16')).toEqualTypeOf<DType>();
    expectTypeOf(ops.torchformer.dropout(x, 0)).toEqualTypeOf<Tensor>();
  });

  it('take the arguments of any overload, and named arguments where they may be left out', () => {
    const x = tensor([1, 2]);
    expect(ops.aten.add(x, 1).toArray()).toEqual([2, 3]);
    expect(ops.aten.add(x, x, { alpha: 2 }).toArray()).toEqual([3, 6]);
    expect(ops.aten.sum.dim_IntList(x, [0], { keepdim: true }).shape).toEqual([1]);
    expect(ops.aten.sum.dim_IntList(x, { keepdim: true, dtype: 'float64' }).dtype).toBe('float64');
    const out = zeros([2]);
    expect(ops.aten.add.out(x, x, { out })).toBe(out);
    expect(ops.aten.max_pool2d(zeros([1, 1, 4, 4]), 2).shape).toEqual([1, 1, 2, 2]);
  });

  it('refuse what the schema refuses', () => {
    const x = tensor([1, 2]);
    // @ts-expect-error the overload for tensors takes no number
    expect(() => ops.aten.add.Tensor(x, 1)).toThrow(/other/);
    // @ts-expect-error no such op
    expect(() => (ops.aten.no_such_op as () => unknown)()).toThrow(/no op named/);
    // @ts-expect-error a dtype that tensors cannot have here
    expect(() => ops.aten.sum(x, { dtype: 'float99' })).toThrow(/no overload accepts/);
    // @ts-expect-error `out` must be given
    expect(() => ops.aten.add.out(x, x)).toThrow(/'out'/);
  });
});
