/** What is done on GPUs before positions reach a kernel; the check itself runs on any device. */
import { describe, expect, it } from 'vitest';
import { memory, ones, tensor, type Tensor } from 'torchformer';
import { checkPositionRange } from '../../../dist/tensor/gpuPositions.js';

const at = (...positions: number[]): Tensor => tensor(positions, { dtype: 'int64' });

describe('positions for a GPU', () => {
  it('from 0 to the size are taken', () => {
    expect(() => checkPositionRange('gather', at(0, 2, 1), 3, 'rejected')).not.toThrow();
    expect(() => checkPositionRange('gather', at(), 0, 'rejected')).not.toThrow();
  });

  it('outside are refused, the one named', () => {
    expect(() => checkPositionRange('gather', at(0, 3), 3, 'rejected')).toThrow(
      new RangeError('gather: index must contain positions from 0 to 2, got 3'),
    );
    expect(() => checkPositionRange('gather', at(0, -1), 3, 'rejected')).toThrow('got -1');
    expect(() => checkPositionRange('take', at(0), 0, 'fromTheEnd')).toThrow(RangeError);
  });

  it('from the end are taken where Python takes them', () => {
    expect(() => checkPositionRange('index', at(-3, 2), 3, 'fromTheEnd')).not.toThrow();
    expect(() => checkPositionRange('index', at(-4), 3, 'fromTheEnd')).toThrow(
      'index: index must contain positions from -3 to 2, got -4',
    );
  });

  it('which ops take positions from the end is what their kernels on the CPU take', () => {
    const x = ones([3]);
    expect(x.index(at(-1)).shape).toEqual([1]);
    expect(x.take(at(-1)).shape).toEqual([1]);
    expect(x.takeAlongDim(at(-1), 0).shape).toEqual([1]);
    expect(x.indexFill(0, at(-1), 0).toArray()).toEqual([1, 1, 0]);
    const refusing = [
      () => x.gather(0, at(-1)),
      () => x.indexSelect(0, at(-1)),
      () => x.scatter(0, at(-1), 0),
      () => x.scatterAdd(0, at(-1), ones([1])),
      () => x.scatterReduce(0, at(-1), ones([1]), 'sum'),
      () => x.indexAdd(0, at(-1), ones([1])),
      () => x.indexCopy(0, at(-1), ones([1])),
    ];
    for (const run of refusing) expect(run).toThrow();
  });

  it('leave no tensors behind', () => {
    const index = at(0, 5);
    const before = memory().tensors;
    expect(() => checkPositionRange('gather', index, 3, 'rejected')).toThrow();
    checkPositionRange('gather', index, 6, 'rejected');
    expect(memory().tensors).toBe(before);
  });
});
