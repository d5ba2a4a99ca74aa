/** Suite `native`: the ops in C++ without Node.js, and the cost of a call there. */
import { runChild } from './child.js';
import { buildNativeProgram, type Timing } from './nativeProgram.js';
import type { BenchOptions } from './options.js';
import { attempt, print } from './report.js';
import { duration, ratio, table } from './table.js';

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

/** The JSON line of the program. */
interface NativeResult {
  readonly calls: readonly { readonly way: string; readonly seconds: Timing }[];
  readonly ops: readonly OpFigure[];
}

/** Runs the suite. @returns the results for `--json` */
export async function benchNative(options: BenchOptions): Promise<unknown> {
  const rounds = options.rounds ?? 15;
  const result = await attempt(`native, ${rounds} rounds`, async () => {
    const program = await buildNativeProgram();
    return runChild<NativeResult>(program, ['ops', String(rounds), String(options.threads)]);
  });
  if (result === null) return null;
  print('\n## native\n');
  print(`In C++ on libtorchformer_core, without Node.js; medians of ${rounds} rounds in turn`);
  showOps(result.ops);
  showCalls(result);
  return result;
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
