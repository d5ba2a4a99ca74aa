/** Suite `decode`: greedy and beam search of ours and the peers, in turn with the same weights. */
import { join } from 'node:path';
import { runChild, runOurs } from '../child.js';
import { buildNativeProgram } from '../nativeProgram.js';
import type { BenchOptions } from '../options.js';
import { attempt, print, say } from '../report.js';
import { describeModel } from '../sizes.js';
import { significant } from '../table.js';
import { withWorkFolder } from '../workFolder.js';
import { benchCorpus } from './benchCorpus.js';
import type { DecodeCase, PreparedDecoding } from './decodeJob.js';
import {
  decodeModels,
  describeSearch,
  searchCases,
  sourceLength,
  targetLength,
  type DecodeSizeName,
  type SearchCase,
} from './decodeModels.js';
import { gatherFigures, type DecodeFigure } from './decodeFigures.js';
import { precisions, type Precision } from './decoders.js';
import { takeDecodeTurns } from './decodeParticipants.js';
import { printFigures, type CaseLimits } from './decodeTables.js';
import { bytesPerWeight, stepPass, tokenLimit } from './limits.js';
import { prepareRun } from './prepareRun.js';

/** Seconds of repetitions of each case in a turn. */
const secondsPerCase = 2;

/** Runs the suite. @returns the results for `--json` */
export async function benchDecode(options: BenchOptions): Promise<unknown> {
  const results: Record<string, unknown> = {};
  const rates = options.decodeSizes.length === 0 ? null : await measureRates(options);
  for (const name of options.decodeSizes) {
    results[name] = await withWorkFolder(options.work, (folder) =>
      benchSize(name, options, rates, folder),
    );
  }
  const { model } = options;
  if (model !== undefined) {
    results['trained'] = await withWorkFolder(options.work, (folder) =>
      benchCorpus(model, options, folder),
    );
  }
  return results;
}

/** The JSON of the native program. */
interface Rates {
  readonly peaks: readonly { readonly before: number; readonly after: number }[];
  readonly reading: readonly { readonly bytes: number; readonly bytesPerSecond: number }[];
}

/**
 * The peak, and the rate of reading as many bytes as the weights of a step have. Null if that cannot be
 * measured, for example without a compiler; then the tables have no limits.
 */
async function measureRates(options: BenchOptions): Promise<Rates | null> {
  const sizes = options.decodeSizes.flatMap((name) =>
    precisions.map((precision) => String(stepBytes(name, precision))),
  );
  say('decode: the rates of the processor');
  try {
    const program = await buildNativeProgram();
    return await runChild<Rates>(program, ['rates', '30', String(options.threads), ...sizes]);
  } catch (error) {
    const reason = error instanceof Error ? error.message.split('\n')[0]! : String(error);
    print(`without limits: the rates of the processor were not measured: ${reason}`);
    return null;
  }
}

function stepBytes(name: DecodeSizeName, precision: Precision): number {
  return stepPass(decodeModels[name], 0, sourceLength).weights * bytesPerWeight[precision];
}

async function benchSize(
  name: DecodeSizeName,
  options: BenchOptions,
  rates: Rates | null,
  folder: string,
): Promise<unknown> {
  const cases = options.searches.map((search): DecodeCase => {
    const { beam, batch } = searchCases[search];
    return { name: search, beam, batch, sentences: batch, maxLength: targetLength };
  });
  const largest = String(Math.max(...cases.map(({ batch }) => batch)));
  const prepared = await attempt(`decode ${name}: making weights and sources`, () =>
    runOurs<PreparedDecoding>('decode/randomPrepare.js', [name, largest, folder]),
  );
  if (prepared === null) return null;
  const { model } = prepared;
  print(`\n## decode, size ${name}\n`);
  print(
    `${describeModel(model)}; random weights; ${sourceLength} source and ${targetLength} target ` +
      'tokens, which never end earlier',
  );
  if (rates !== null) print(describeRates(name, rates));
  const job = { ...prepared, threads: options.threads, cases, seconds: secondsPerCase };
  const run = await prepareRun(name, job, options, folder);
  const turns = await takeDecodeTurns(run.job, run.participants, {
    title: `decode ${name}`,
    file: join(folder, `${name}.decode`),
    python: options.python,
    rounds: options.rounds ?? 3,
  });
  const results: Record<string, readonly DecodeFigure[]> = {};
  for (const each of cases) {
    const figures = gatherFigures(turns, each.name);
    if (figures.length === 0) continue;
    print(`\n${describeSearch(each)}\n`);
    printFigures(figures, {
      oneRow: each.batch === 1,
      limits: rates === null ? null : caseLimits(name, each, rates),
    });
    results[each.name] = figures;
  }
  return { ...prepared, sources: undefined, cases: results, rates };
}

/** The most tokens per second in each precision. */
function caseLimits(
  name: DecodeSizeName,
  search: SearchCase,
  { peaks, reading }: Rates,
): CaseLimits {
  const widest = peaks.at(-1);
  const peak = widest === undefined ? null : Math.max(widest.before, widest.after);
  const limitOf = (precision: Precision): number => {
    const bytes = stepBytes(name, precision);
    const { bytesPerSecond } = reading.find((each) => each.bytes === bytes)!;
    return tokenLimit(decodeModels[name], search, precision, { bytesPerSecond, peak });
  };
  return { float32: limitOf('float32'), bfloat16: limitOf('bfloat16'), int8: limitOf('int8') };
}

/** Bytes per second of reading what a step reads. */
function readingRate(name: DecodeSizeName, precision: Precision, { reading }: Rates): number {
  const bytes = stepBytes(name, precision);
  return reading.find((each) => each.bytes === bytes)!.bytesPerSecond;
}

/** The higher one, as suite `products` takes it. */
function peakOf({ peaks }: Rates): number | null {
  const widest = peaks.at(-1);
  return widest === undefined ? null : Math.max(widest.before, widest.after);
}

function describeRates(name: DecodeSizeName, rates: Rates): string {
  const parts = precisions.map((precision) => {
    const bytes = stepBytes(name, precision) / 1e6;
    const rate = readingRate(name, precision, rates) / 1e9;
    return `${significant(bytes)} MB in ${precision} at ${significant(rate)} GB/s`;
  });
  const peak = peakOf(rates);
  return (
    `Weights that a step reads: ${parts.join(', ')}; peak on registers: ` +
    (peak === null ? 'unknown' : `${significant(peak / 1e9)} GFLOP/s`)
  );
}
