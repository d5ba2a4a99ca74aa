/** Suite `products`: the products of linear layers by every way, beside the processor's peak. */
import { runChild } from '../child.js';
import { buildNativeProgram } from '../nativeProgram.js';
import type { BenchOptions } from '../options.js';
import { attempt, print } from '../report.js';
import { describeModel, trainSizes, type SizeName } from '../sizes.js';
import { duration, ratio, significant, table } from '../table.js';
import {
  formulas,
  layouts,
  measuredProducts,
  nameOf,
  operationsOf,
  stepProducts,
  steps,
  type Layout,
} from './modelProducts.js';
import {
  peakOf,
  stepRates,
  waysIn,
  wayTitles,
  type ProductFigure,
  type ProductsResult,
  type StepRate,
} from './productFigures.js';
import { classFigures, tableRow, type Candidate, type ClassFigure } from './waysTable.js';

/** Runs the suite. @returns the results for `--json` */
export async function benchProducts(options: BenchOptions): Promise<unknown> {
  const rounds = options.rounds ?? 10;
  const results: Partial<Record<SizeName, ProductsResult>> = {};
  for (const name of options.sizes) {
    const result = await attempt(`products ${name}, ${rounds} rounds`, async () => {
      const program = await buildNativeProgram();
      const products = measuredProducts(trainSizes[name].model).map(nameOf);
      const args = ['products', String(rounds), String(options.threads), ...products];
      return runChild<ProductsResult>(program, args);
    });
    if (result === null) continue;
    results[name] = result;
    show(name, result, rounds);
  }
  showTable(Object.values(results));
  return results;
}

function show(name: SizeName, result: ProductsResult, rounds: number): void {
  const { model } = trainSizes[name];
  const { products, peaks } = result;
  print(`\n## products, size ${name}\n`);
  print(`${describeModel(model)}; float32; ${rounds} rounds in turn; ${describeChoice()}`);
  for (const { instructions, before, after } of peaks) {
    print(
      `Peak on registers with ${instructions}: ${gigaflops(before)} GFLOP/s before, ` +
        `${gigaflops(after)} after`,
    );
  }
  const peak = peakOf(result);
  print('\nGFLOP/s from the shortest time (from the median), share of the peak by the shortest');
  for (const layout of layouts) showLayout(layout, products, peak);
  showDifferences(products);
  for (const step of steps) {
    print(
      `\nAll products of a training step, ${step.name}: ${step.rows} rows on each side, ` +
        'the generator at most 256 at a time\n',
    );
    showStep(stepRates(stepProducts(model, step), products), peak);
  }
}

function describeChoice(): string {
  const forced = process.env['TORCHFORMER_GEMM'];
  return `choice is ${forced ? `TORCHFORMER_GEMM=${forced}` : "the package's, by its table"}`;
}

function showLayout(layout: Layout, products: readonly ProductFigure[], peak: number | null): void {
  const figures = products.filter((figure) => figure.layout === layout);
  const ways = waysIn(figures);
  const rows = figures.map((figure) => {
    const operations = operationsOf(figure);
    return [
      `${figure.input}x${figure.output}`,
      String(figure.tokens),
      ...ways.map((way) => {
        const seconds = figure.ways[way]?.seconds;
        if (seconds === undefined) return '-';
        const rate = operations / seconds.shortest;
        return `${gigaflops(rate)} (${gigaflops(operations / seconds.median)}) ${share(rate, peak)}`;
      }),
    ];
  });
  print(`\n${formulas[layout]}\n`);
  print(table(['input x output', 'rows', ...ways.map((way) => wayTitles[way])], rows));
}

function showDifferences(products: readonly ProductFigure[]): void {
  const ways = waysIn(products);
  const rows = layouts.map((layout) => [
    formulas[layout],
    ...ways.map((way) => {
      const figures = products.filter((figure) => figure.layout === layout);
      const found = figures.flatMap((figure) => figure.ways[way]?.difference ?? []);
      return found.length === 0 ? '-' : Math.max(...found).toExponential(1);
    }),
  ]);
  print('\nLargest difference from float64, relative to the largest value of a product\n');
  print(table(['product', ...ways.map((way) => wayTitles[way])], rows));
}

function showStep(rates: readonly StepRate[], peak: number | null): void {
  const rows = rates.map(({ way, rate, medianRate, slowest, slowestRate }) => [
    way === 'best' ? 'best of each' : wayTitles[way],
    gigaflops(rate),
    share(rate, peak),
    share(medianRate, peak),
    share(slowestRate, peak),
    `${formulas[slowest.layout]}, ${slowest.tokens} rows, ${slowest.input}x${slowest.output}`,
  ]);
  const head = ['way', 'GFLOP/s', 'share of peak', 'by medians', 'lowest share', 'of product'];
  print(table(head, rows));
}

function showTable(results: readonly ProductsResult[]): void {
  const [first] = results;
  if (first === undefined) return;
  const classes = classFigures(
    first.tokenClasses,
    results.flatMap(({ products }) => products),
  );
  print('\n## Ways by number of rows\n');
  print('Shortest times, summed over all shapes above; in parentheses, relative to the fastest\n');
  const candidates: Candidate[] = ['own', 'packed', 'mkl', 'onednn'];
  const rows = classes.map((figure) => [
    `${formulas[figure.layout]}, ${describeClass(figure)}`,
    ...candidates.map((candidate) => {
      const seconds = figure.seconds[candidate];
      if (seconds === undefined) return '-';
      return `${duration(seconds)} (${ratio(seconds / figure.seconds[figure.fastest]!)})`;
    }),
  ]);
  print(table(['product', 'own', 'own, packed', 'MKL', 'oneDNN'], rows));
  if (classes.every(({ seconds }) => seconds.own === undefined)) return;
  print('\nThe row of native/core/product/ways.cc for this kind of processor\n');
  print(tableRow(first, classes));
}

function describeClass({ first, end }: ClassFigure): string {
  return end === Infinity ? `${first} rows or more` : `${first} to ${end - 1} rows`;
}

function gigaflops(rate: number): string {
  return significant(rate / 1e9);
}

function share(rate: number, peak: number | null): string {
  return peak === null ? '-' : `${((rate / peak) * 100).toFixed(0)} %`;
}
