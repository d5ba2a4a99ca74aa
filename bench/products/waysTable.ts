/** The table of ways for the processor that was measured: a row of `native/core/product/ways.cc`. */
import { layouts, type Layout } from './modelProducts.js';
import { sum, type ProductFigure, type ProductsResult, type WayName } from './productFigures.js';

/** What the table can name; `packed` is not a choice, but shown beside forward products. */
export type Candidate = 'own' | 'packed' | 'mkl' | 'onednn';

export interface ClassFigure {
  readonly layout: Layout;
  /** Token counts of the class, from `first` to before `end`. */
  readonly first: number;
  readonly end: number;
  /** Summed over the shapes of the class; without ways that not all shapes have. */
  readonly seconds: Readonly<Partial<Record<Candidate, number>>>;
  /** Among those that the table can name. */
  readonly fastest: Exclude<Candidate, 'packed'>;
}

/** Sums the shortest times over all shapes of each class of the table, for each layout. */
export function classFigures(
  tokenClasses: readonly number[],
  figures: readonly ProductFigure[],
): ClassFigure[] {
  const own: WayName = figures.some(({ ways }) => ways.avx512 !== undefined) ? 'avx512' : 'avx2';
  const candidates: [Candidate, WayName][] = [
    ['own', own],
    ['packed', 'packed'],
    ['mkl', 'mkl'],
    ['onednn', 'onednn'],
  ];
  const ends = [...tokenClasses, Infinity];
  return layouts.flatMap((layout) =>
    ends.map((end, index) => {
      const first = index === 0 ? 1 : ends[index - 1]!;
      const inClass = figures.filter(
        (figure) => figure.layout === layout && figure.tokens >= first && figure.tokens < end,
      );
      const seconds: Partial<Record<Candidate, number>> = {};
      for (const [candidate, way] of candidates) {
        const times = inClass.map(({ ways }) => ways[way]?.seconds.shortest);
        if (times.every((time) => time !== undefined)) seconds[candidate] = sum(times);
      }
      return { layout, first, end, seconds, fastest: fastestOf(seconds) };
    }),
  );
}

function fastestOf(seconds: ClassFigure['seconds']): ClassFigure['fastest'] {
  const named = ['own', 'mkl', 'onednn'] as const;
  const least = Math.min(...named.map((way) => seconds[way] ?? Infinity));
  return named.find((way) => seconds[way] === least) ?? 'mkl';
}

/** Names in `ways.cc`. */
const constants = { own: 'own', mkl: 'mkl', onednn: 'oneDnn' } as const;

function initializer(classes: readonly ClassFigure[], layout: Layout): string {
  const ways = classes.filter((each) => each.layout === layout);
  return `{${ways.map(({ fastest }) => constants[fastest]).join(', ')}}`;
}

/**
 * The row in C++, for pasting. Forward products are own for any number of rows, for the reason that
 * `ways.cc` gives; what is fastest stands beside them.
 */
export function tableRow({ kind, tokenClasses }: ProductsResult, classes: readonly ClassFigure[]) {
  const allOwn = `{${Array.from({ length: tokenClasses.length + 1 }, () => 'own').join(', ')}}`;
  return [
    `    {"${kind}",`,
    `     ${allOwn},  // the fastest without packed weights: ${initializer(classes, 'forward')}`,
    `     ${initializer(classes, 'inputGradient')},`,
    `     ${initializer(classes, 'weightGradient')}},`,
  ].join('\n');
}
