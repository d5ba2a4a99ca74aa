/** Suite `native`: the ops in C++ without Node.js, the cost of a call there, and matrix products. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { runChild } from './child.js';
import type { BenchOptions } from './options.js';
import { attempt, print, say } from './report.js';
import { duration, ratio, significant, table } from './table.js';

/** Seconds per call. */
interface Timing {
  readonly median: number;
  /** If it is far below the median, other programs were running. */
  readonly shortest: number;
}

interface OpFigure {
  readonly op: string;
  readonly what: string;
  /** The op that `referenceSeconds` measures. */
  readonly reference: string;
  readonly seconds: Timing;
  readonly referenceSeconds: Timing;
  /** Largest difference of results and gradients, relative to the largest value. */
  readonly difference: number;
}

interface ProductFigure {
  readonly what: string;
  /** Rows, inner size, columns. */
  readonly shape: readonly [number, number, number];
  readonly count: number;
  readonly operations: number;
  readonly mkl: Timing;
  /** Undefined if libtorch has no oneDNN. */
  readonly oneDnn?: Timing;
}

/** The JSON line of the program. */
interface NativeResult {
  readonly calls: readonly { readonly way: string; readonly seconds: Timing }[];
  readonly ops: readonly OpFigure[];
  readonly products: readonly ProductFigure[];
}

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Runs the suite. @returns the results for `--json` */
export async function benchNative(options: BenchOptions): Promise<unknown> {
  const rounds = options.rounds ?? 15;
  const result = await attempt(`native, ${rounds} rounds`, async () => {
    const program = await buildProgram();
    return runChild<NativeResult>(program, [String(rounds), String(options.threads)]);
  });
  if (result === null) return null;
  print('\n## native\n');
  print(`In C++ on libtorchformer_core, without Node.js; medians of ${rounds} rounds in turn`);
  showOps(result.ops);
  showCalls(result);
  showProducts(result.products);
  return result;
}

/** The target is not part of the default build, which `npm run bench` has already configured. */
async function buildProgram(): Promise<string> {
  say('building build/bench/native');
  await promisify(execFile)('cmake', ['--build', 'build-native', '--target', 'bench_native'], {
    cwd: root,
  });
  return fileURLToPath(new URL('native', import.meta.url));
}

function showOps(figures: readonly OpFigure[]): void {
  print('\nOps, forward and backward, compared with the plain ATen ops that they replace\n');
  const rows = figures.map((each) => [
    each.op,
    each.what,
    duration(each.seconds.median),
    duration(each.referenceSeconds.median),
    ratio(each.referenceSeconds.median / each.seconds.median),
    ratio(each.referenceSeconds.shortest / each.seconds.shortest),
    each.difference.toExponential(1),
  ]);
  print(table(['op', 'input', 'ours', 'ATen', 'ours is', 'shortest', 'difference'], rows));
}

function showCalls({ calls }: NativeResult): void {
  print('\nOne sum of two [4, 4] tensors, including freeing the result\n');
  print(
    table(
      ['call', 'time', 'shortest'],
      calls.map(({ way, seconds }) => [way, duration(seconds.median), duration(seconds.shortest)]),
    ),
  );
}

function showProducts(figures: readonly ProductFigure[]): void {
  print('\nMatrix products in float32; rates from the shortest times\n');
  const rate = (operations: number, seconds: Timing | undefined): string[] =>
    seconds === undefined
      ? ['-', '-', '-']
      : [
          duration(seconds.median),
          duration(seconds.shortest),
          significant(operations / seconds.shortest / 1e9),
        ];
  const rows = figures.map(({ what, shape, count, operations, mkl, oneDnn }) => [
    what,
    `${count > 1 ? `${count} x ` : ''}${shape.join('x')}`,
    ...rate(operations, mkl),
    ...rate(operations, oneDnn),
  ]);
  const times = (library: string): string[] => [library, 'shortest', 'GFLOP/s'];
  print(table(['product', 'shape', ...times('MKL'), ...times('oneDNN')], rows));
}
