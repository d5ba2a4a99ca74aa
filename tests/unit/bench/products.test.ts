/** Suite products: what is measured, the figures of a step, and the table of ways. */
import { describe, expect, it } from 'vitest';
import {
  measuredProducts,
  nameOf,
  operationsOf,
  stepProducts,
  steps,
  type Product,
} from '../../../bench/products/modelProducts.js';
import {
  peakOf,
  stepRates,
  type ProductFigure,
  type WayName,
} from '../../../bench/products/productFigures.js';
import { classFigures, tableRow } from '../../../bench/products/waysTable.js';
import { sizeNames, trainSizes } from '../../../bench/sizes.js';

/** A figure with these seconds; medians are twice the shortest. */
function figure(product: Product, seconds: Partial<Record<WayName, number>>): ProductFigure {
  const ways = Object.entries(seconds).map(([way, shortest]) => [
    way,
    { seconds: { shortest, median: 2 * shortest }, difference: 0 },
  ]);
  return { ...product, ways: Object.fromEntries(ways) as ProductFigure['ways'] };
}

describe('the products of a model', () => {
  it.each(sizeNames)('size %s: all of a step are measured, each once', (name) => {
    const { model } = trainSizes[name];
    const measured = measuredProducts(model).map(nameOf);
    expect(new Set(measured).size).toBe(measured.length);
    for (const step of steps) {
      expect(measured).toEqual(
        expect.arrayContaining(stepProducts(model, step).map((product) => nameOf(product))),
      );
    }
  });

  it('cost six operations for each weight and row', () => {
    const { model } = trainSizes.base;
    const { N, dModel: d, dFf, vocabSize } = model;
    const weights = N * (12 * d * d + 4 * d * dFf) + vocabSize * d;
    for (const step of steps) {
      const operations = stepProducts(model, step).map(
        (product) => product.count * operationsOf(product),
      );
      const total = operations.reduce((all, each) => all + each, 0);
      expect(total / (6 * weights * step.rows)).toBeCloseTo(1, 12);
    }
  });
});

describe('the figures of a step', () => {
  const narrow = { layout: 'forward', tokens: 10, input: 5, output: 10 } as const;
  const wide = { layout: 'weightGradient', tokens: 10, input: 5, output: 20 } as const;
  const counted = [
    { ...narrow, count: 2 },
    { ...wide, count: 0.5 },
  ];

  it('weight each product by its time, for every way that has all, and for the best of each', () => {
    const figures = [
      figure(narrow, { choice: 10, mkl: 20, packed: 5 }),
      figure(wide, { choice: 40, mkl: 20 }),
    ];
    const rates = stepRates(counted, figures);
    expect(rates.map(({ way }) => way)).toEqual(['choice', 'mkl', 'best']);
    // 2 x 1,000 and 0.5 x 2,000 operations.
    expect(rates.map(({ rate }) => rate)).toEqual([3000 / 40, 3000 / 50, 3000 / 20]);
    expect(rates.map(({ medianRate }) => medianRate)).toEqual([3000 / 80, 3000 / 100, 3000 / 40]);
    expect(rates.map(({ slowestRate }) => slowestRate)).toEqual([50, 50, 100]);
    expect(rates[0]?.slowest).toEqual(counted[1]);
    expect(rates[1]?.slowest).toEqual(counted[0]);
  });

  it('must all have been measured', () => {
    expect(() => stepRates(counted, [figure(narrow, { choice: 1 })])).toThrow(
      'weightGradient:10x5x20 was not measured',
    );
  });

  it('are a share of the higher peak of the widest vectors', () => {
    const result = { kind: 'other', tokenClasses: [], products: [] };
    expect(peakOf({ ...result, peaks: [] })).toBeNull();
    const peaks = [
      { instructions: 'AVX2', before: 9, after: 9 },
      { instructions: 'AVX-512', before: 4, after: 5 },
    ];
    expect(peakOf({ ...result, peaks })).toBe(5);
  });
});

describe('the table of ways', () => {
  const shapes = [
    [5, 5],
    [5, 10],
  ] as const;
  const figures = (['forward', 'inputGradient', 'weightGradient'] as const).flatMap((layout) =>
    [3, 4, 9].flatMap((tokens) =>
      shapes.map(([input, output], index) =>
        figure(
          { layout, tokens, input, output },
          {
            avx2: 1,
            avx512: tokens < 4 ? 3 : 1.5,
            // Faster for one shape of the class, and slower in their sum.
            mkl: index === 0 ? 1 : 4,
            onednn: layout === 'forward' ? 1 : 5,
            ...(layout === 'forward' && tokens < 9 ? { packed: 0.5 } : {}),
          },
        ),
      ),
    ),
  );
  const classes = classFigures([4], figures);

  it('has the way with the least time over all shapes of a class', () => {
    expect(classes.map(({ layout, first, end, fastest }) => [layout, first, end, fastest])).toEqual(
      [
        ['forward', 1, 4, 'onednn'],
        ['forward', 4, Infinity, 'onednn'],
        ['inputGradient', 1, 4, 'mkl'],
        ['inputGradient', 4, Infinity, 'own'],
        ['weightGradient', 1, 4, 'mkl'],
        ['weightGradient', 4, Infinity, 'own'],
      ],
    );
    expect(classes[0]?.seconds).toEqual({ own: 6, packed: 1, mkl: 5, onednn: 2 });
    // Not all shapes of this class have packed weights.
    expect(classes[1]?.seconds).toEqual({ own: 6, mkl: 10, onednn: 4 });
  });

  it('is printed as C++', () => {
    const result = { kind: 'Intel with AVX-512', tokenClasses: [4], products: [], peaks: [] };
    expect(tableRow(result, classes).split('\n')).toEqual([
      '    {"Intel with AVX-512",',
      '     {own, own},  // the fastest without packed weights: {oneDnn, oneDnn}',
      '     {mkl, own},',
      '     {mkl, own}},',
    ]);
  });
});
