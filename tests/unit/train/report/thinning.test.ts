/** Long curves and lists are thinned while they grow. */
import { describe, expect, test } from 'vitest';
// Internal: what report.html is made with.
import { ThinnedCurve, ThinnedList } from '../../../../dist/train/report/thinning.js';

function curveOf(limit: number, values: readonly number[]) {
  const curve = new ThinnedCurve(limit);
  values.forEach((value, index) => curve.add(index + 1, value));
  return curve.curve();
}

describe('a curve', () => {
  test('that is short is kept as it is', () => {
    expect(curveOf(4, [3, 1, 2])).toEqual({
      points: { x: [1, 2, 3], y: [3, 1, 2] },
      means: null,
    });
  });

  test('that is long keeps the least, the greatest and the mean of each part, and the last value', () => {
    // Two parts of four: 3 1 2 2 and 5 4 9 6, then the beginning of a third.
    const { points, means } = curveOf(4, [3, 1, 2, 2, 5, 4, 9, 6, 7, 8]);
    expect(points).toEqual({ x: [1, 2, 6, 7, 9, 10], y: [3, 1, 4, 9, 7, 8] });
    expect(means).toEqual({ x: [2.5, 6.5, 9.5], y: [2, 6, 7.5] });
  });

  test('keeps one peak among a million steps', () => {
    const curve = new ThinnedCurve(1000);
    for (let step = 1; step <= 1_000_000; step++) curve.add(step, step === 345_678 ? 50 : 1);
    const { points } = curve.curve();
    expect(points.x.length).toBeLessThan(2100);
    expect(points.x[points.y.indexOf(50)]).toBe(345_678);
    expect(points.x.at(-1)).toBe(1_000_000);
  });

  test('has a gap where a value is not finite, and does not count it in means', () => {
    expect(curveOf(4, [1, NaN]).points).toEqual({ x: [1, 2], y: [1, null] });
    const { points, means } = curveOf(2, [1, NaN, 3, 5]);
    expect(points).toEqual({ x: [1, 2, 3, 4], y: [1, null, 3, 5] });
    expect(means).toEqual({ x: [1.5, 3.5], y: [1, 4] });
  });
});

describe('a list', () => {
  const listOf = (limit: number, count: number) => {
    const list = new ThinnedList<number>(limit);
    for (let element = 0; element < count; element++) list.add(element);
    return list;
  };

  test('that is short is kept', () => {
    expect(listOf(4, 4).elements()).toEqual([0, 1, 2, 3]);
  });

  test('that is long keeps every second element, then every fourth, and the last', () => {
    expect(listOf(4, 6).elements()).toEqual([0, 2, 4, 5]);
    expect(listOf(4, 10).elements()).toEqual([0, 4, 8, 9]);
  });

  test('can have its last element replaced', () => {
    for (const count of [1, 4, 6]) {
      const list = listOf(4, count);
      list.replaceLast(100);
      expect(list.last).toBe(100);
      expect(list.elements().filter((element) => element >= count - 1)).toEqual([100]);
    }
  });
});
