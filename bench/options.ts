/** The command line of `npm run bench`. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import {
  decodeSizeNames,
  searchNames,
  type DecodeSizeName,
  type SearchName,
} from './decode/decodeModels.js';
import { decoderNames, precisions, type DecoderName, type Precision } from './decode/decoders.js';
import { instructionSets } from './machine.js';
import { sizeNames, type SizeName } from './sizes.js';

export const suiteNames = [
  'train',
  'modules',
  'native',
  'products',
  'bridge',
  'load',
  'learning',
  'decode',
  'responsiveness',
  'serve',
  'memory',
  'translator',
] as const;
export type SuiteName = (typeof suiteNames)[number];

export const trainPeers = ['tuned-fp32', 'compiled-fp32', 'seed', 'tuned'] as const;
export type TrainPeer = (typeof trainPeers)[number];

/** The peers on length-bucketed batches; the others are for the padded ones. */
export const bucketPeers: readonly TrainPeer[] = ['tuned-fp32', 'compiled-fp32'];

/** The tables of suite `train`, in their order. */
export const trainTables = ['buckets', 'padded'] as const;
export type TrainTable = (typeof trainTables)[number];

export const trainJobs = ['timing', 'equality', 'epochs'] as const;
export type TrainJobName = (typeof trainJobs)[number];

export const trainDTypes = ['float32', 'bfloat16'] as const;
export type TrainDType = (typeof trainDTypes)[number];

export interface BenchOptions {
  readonly suites: readonly SuiteName[];
  readonly sizes: readonly SizeName[];
  readonly dtype: readonly TrainDType[];
  /** Empty: ours only. */
  readonly peers: readonly TrainPeer[];
  /** Peers that are skipped by default, and why. */
  readonly omitted?: string;
  readonly tables: readonly TrainTable[];
  readonly jobs: readonly TrainJobName[];
  /** Of the job of that name. */
  readonly epochs: number;
  /** These four of suite `decode`. */
  readonly decodeSizes: readonly DecodeSizeName[];
  readonly searches: readonly SearchName[];
  readonly decoders: readonly DecoderName[];
  readonly precisions: readonly Precision[];
  /** Folder of a trained model for suites `decode` and `serve`. */
  readonly model?: string;
  /** These two of suite `serve`: clients at the same time, and how long each measurement takes. */
  readonly clients: number;
  readonly seconds: number;
  /** Default of these three: as defined by the size. */
  readonly rounds?: number;
  readonly steps?: number;
  readonly warmup?: number;
  /** Seconds after which a participant is stopped. */
  readonly limit: number;
  readonly threads: number;
  readonly data: string;
  readonly python: string;
  /** File for all results. */
  readonly json?: string;
  /** Folder for weights and batches; default: a temporary one. */
  readonly work?: string;
  readonly profile: boolean;
  readonly fetchTokenizer: boolean;
}

/** @throws CommanderError for invalid arguments, after printing its message */
export function parseOptions(args: readonly string[]): BenchOptions {
  const program = new Command('npm run bench --')
    .description('Measures torchformer and its peers in turn, in one run on the same data.')
    .argument(
      '[suites...]',
      `suites to run: ${suiteNames.join(', ')} (default: all but translator)`,
    )
    .option(
      '--sizes <names>',
      `sizes for train and products: ${sizeNames.join(',')}`,
      among(sizeNames),
      ['small', 'base'],
    )
    .option(
      '--dtype <names>',
      `dtypes of our training: ${trainDTypes.join(',')}`,
      among(trainDTypes),
      ['float32'],
    )
    .option(
      '--peers <names>',
      `peers for train: ${trainPeers.join(',')}; or none, which skips the peers of all suites`,
      noneOr(among(trainPeers)),
    )
    .option('--tables <names>', `batches of train: ${trainTables.join(',')}`, among(trainTables), [
      ...trainTables,
    ])
    .option('--jobs <names>', `what train does: ${trainJobs.join(',')}`, among(trainJobs), [
      'timing',
      'equality',
    ])
    .option('--epochs <count>', 'epochs of job epochs', integer(1, 1000), 1)
    .option(
      '--decode-sizes <names>',
      `models of decode: ${decodeSizeNames.join(',')}; or none, for --model alone`,
      noneOr(among(decodeSizeNames)),
      [...decodeSizeNames],
    )
    .option(
      '--searches <names>',
      `searches of decode, with the batch: ${searchNames.join(',')}`,
      among(searchNames),
      [...searchNames],
    )
    .option(
      '--decoders <names>',
      `participants of decode: ${decoderNames.join(',')}`,
      among(decoderNames),
      [...decoderNames],
    )
    .option(
      '--precisions <names>',
      `precisions of decode: ${precisions.join(',')}`,
      among(precisions),
      [...precisions],
    )
    .option(
      '--model <folder>',
      'run folder of a model trained on Multi30k, German to English, for decode and serve',
    )
    .option('--clients <count>', 'clients at the same time (serve)', integer(1, 4096), 64)
    .option('--seconds <count>', 'time of each measurement (serve)', integer(1, 3600), 10)
    .option('--rounds <count>', 'number of turns of every participant', integer(1))
    .option('--steps <count>', 'timed steps per turn (train)', integer(1))
    .option('--warmup <count>', 'steps before the timed ones (train)', integer(0))
    .option(
      '--limit <seconds>',
      'time after which a participant is stopped; job epochs: 6 times as long per epoch',
      integer(1),
      600,
    )
    .option(
      '--threads <count>',
      'threads of every participant',
      integer(1, 1024),
      availableParallelism(),
    )
    .addOption(
      new Option('--data <folder>', 'folder that contains multi30k-de-en/ and tatoeba-en-zh/')
        .env('TORCHFORMER_BENCH_DATA')
        .default(fileURLToPath(new URL('../../../shared/data', import.meta.url)), '../shared/data'),
    )
    .addOption(
      new Option('--python <program>', 'Python with the packages of bench/peers/requirements.txt')
        .env('TORCHFORMER_BENCH_PYTHON')
        .default('python3'),
    )
    .option('--json <file>', 'write all results to this file')
    .option('--work <folder>', 'keep weights and batches in this folder')
    .option(
      '--profile',
      'show the time per op of our training step instead of running suites',
      false,
    )
    .option('--fetch-tokenizer', 'download the tokenizer that size seed needs, and exit', false)
    .allowExcessArguments(false)
    .showHelpAfterError('Use --help for a list of options.')
    .exitOverride();
  program.parse([...args], { from: 'user' });
  // Training to the end takes an hour, so it must be asked for.
  const usual = suiteNames.filter((name) => name !== 'translator');
  const suites = program.args.length === 0 ? usual : suitesOf(program);
  const given = program.opts<Omit<BenchOptions, 'suites'>>();
  if (given.jobs.includes('epochs') && !given.tables.includes('buckets')) {
    program.error('error: --jobs epochs trains on length buckets; add buckets to --tables');
  }
  return {
    ...given,
    ...(program.getOptionValue('peers') === undefined ? usualPeers() : {}),
    suites,
  };
}

/** bfloat16 in PyTorch needs AVX-512; without it, one small step takes half a minute. */
function usualPeers(): Pick<BenchOptions, 'peers' | 'omitted'> {
  if (instructionSets().includes('avx512f')) return { peers: trainPeers };
  return {
    peers: trainPeers.filter((peer) => peer !== 'tuned'),
    omitted: 'tuned is skipped: bfloat16 is very slow without AVX-512; use --peers to include it',
  };
}

function suitesOf(program: Command): SuiteName[] {
  return program.args.map((name) => {
    const suite = suiteNames.find((known) => known === name);
    if (suite === undefined) {
      program.error(`error: unknown suite ${name}; the suites are ${suiteNames.join(', ')}`);
    }
    return suite;
  });
}

function noneOr<T>(parse: (text: string) => T[]) {
  return (text: string): T[] => (text === 'none' ? [] : parse(text));
}

/** Parses a comma-separated list; each name occurs once, in the order of `names`. */
function among<T extends string>(names: readonly T[]) {
  return (text: string): T[] => {
    const given = text.split(',').map((name) => name.trim());
    const unknown = given.find((name) => !names.some((known) => known === name));
    if (unknown !== undefined) {
      throw new InvalidArgumentError(`It must be a list of ${names.join(', ')}, got "${unknown}".`);
    }
    return names.filter((name) => given.includes(name));
  };
}

function integer(minimum: number, maximum = 1_000_000) {
  return (text: string): number => {
    const value = /^\d+$/.test(text) ? Number(text) : NaN;
    if (!(value >= minimum && value <= maximum)) {
      throw new InvalidArgumentError(`It must be an integer from ${minimum} to ${maximum}.`);
    }
    return value;
  };
}
