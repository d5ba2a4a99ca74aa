/** What the program measures, and what follows for a training step. */
import type { Timing } from '../nativeProgram.js';
import { nameOf, operationsOf, type CountedProduct, type Product } from './modelProducts.js';

/**
 * What multiplies: `choice` is the package's own choice by its table or by TORCHFORMER_GEMM, `packed` a
 * linear layer without gradients, which keeps its weight packed.
 */
export const wayNames = ['choice', 'avx512', 'avx2', 'packed', 'mkl', 'onednn'] as const;
export type WayName = (typeof wayNames)[number];

export const wayTitles: Readonly<Record<WayName, string>> = {
  choice: 'choice',
  avx512: 'AVX-512',
  avx2: 'AVX2',
  packed: 'packed',
  mkl: 'MKL',
  onednn: 'oneDNN',
};

export interface WayFigure {
  readonly seconds: Timing;
  /** Largest difference from float64, relative to the largest value. */
  readonly difference: number;
}

export interface ProductFigure extends Product {
  /** Without those that this machine lacks, and `packed` where no weight is kept packed. */
  readonly ways: Readonly<Partial<Record<WayName, WayFigure>>>;
}

/** The JSON of the program. */
export interface ProductsResult {
  /** The kind of processor, as in the table of ways. */
  readonly kind: string;
  /** Token counts at which that table changes. */
  readonly tokenClasses: readonly number[];
  readonly products: readonly ProductFigure[];
  /** Operations per second on registers alone; the widest vectors last. */
  readonly peaks: readonly {
    readonly instructions: string;
    readonly before: number;
    readonly after: number;
  }[];
}

/** The higher one: with the lower, a share could exceed 1 only because of other load. */
export function peakOf({ peaks }: ProductsResult): number | null {
  const widest = peaks.at(-1);
  return widest === undefined ? null : Math.max(widest.before, widest.after);
}

/** The ways that some product has, in the order of {@link wayNames}. */
export function waysIn(figures: readonly ProductFigure[]): WayName[] {
  return wayNames.filter((way) => figures.some(({ ways }) => ways[way] !== undefined));
}

/** The products of a step by one way, or by the fastest way of each: `best`. */
export interface StepRate {
  readonly way: WayName | 'best';
  /** Operations per second over all products. */
  readonly rate: number;
  readonly medianRate: number;
  /** The product with the lowest rate. */
  readonly slowest: CountedProduct;
  readonly slowestRate: number;
}

/** One for each way that has all products, and `best`. */
export function stepRates(
  products: readonly CountedProduct[],
  figures: readonly ProductFigure[],
): StepRate[] {
  const byName = new Map(figures.map((figure) => [nameOf(figure), figure]));
  const ways = waysIn(figures);
  const timings = (way: WayName | 'best'): Timing[] | null => {
    const found = products.map((product): Timing | undefined => {
      const figure = byName.get(nameOf(product));
      if (figure === undefined) throw new Error(`${nameOf(product)} was not measured`);
      if (way !== 'best') return figure.ways[way]?.seconds;
      return ways
        .flatMap((each) => figure.ways[each]?.seconds ?? [])
        .reduce((best, each) => (each.shortest < best.shortest ? each : best));
    });
    return found.every((timing) => timing !== undefined) ? found : null;
  };
  return [...ways, 'best' as const].flatMap((way) => {
    const found = timings(way);
    return found === null ? [] : [{ way, ...rateOf(products, found) }];
  });
}

function rateOf(products: readonly CountedProduct[], timings: readonly Timing[]) {
  const operations = sum(products.map((product) => product.count * operationsOf(product)));
  const seconds = (kind: keyof Timing): number =>
    sum(products.map(({ count }, index) => count * timings[index]![kind]));
  const rates = products.map((product, index) => operationsOf(product) / timings[index]!.shortest);
  const slowestRate = Math.min(...rates);
  return {
    rate: operations / seconds('shortest'),
    medianRate: operations / seconds('median'),
    slowest: products[rates.indexOf(slowestRate)]!,
    slowestRate,
  };
}

export function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}
