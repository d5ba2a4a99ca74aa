/** The command line of `npm run bench`. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { instructionSets } from './machine.js';
import { sizeNames, type SizeName } from './sizes.js';

export const suiteNames = ['train', 'modules', 'native', 'bridge', 'load', 'learning'] as const;
export type SuiteName = (typeof suiteNames)[number];

export const trainPeers = ['seed', 'tuned', 'tuned-fp32'] as const;
export type TrainPeer = (typeof trainPeers)[number];

export const trainDTypes = ['float32', 'bfloat16'] as const;
export type TrainDType = (typeof trainDTypes)[number];

export interface BenchOptions {
  readonly suites: readonly SuiteName[];
  readonly sizes: readonly SizeName[];
  readonly dtype: readonly TrainDType[];
  /** Empty: only ours. */
  readonly peers: readonly TrainPeer[];
  /** Peers that are left out because none were named, and why. */
  readonly omitted?: string;
  readonly jobs: readonly ('timing' | 'equality')[];
  /** These three: as the size says when not given. */
  readonly rounds?: number;
  readonly steps?: number;
  readonly warmup?: number;
  /** Seconds after which a participant is ended. */
  readonly limit: number;
  readonly threads: number;
  readonly data: string;
  readonly python: string;
  /** File for all figures. */
  readonly json?: string;
  /** Folder for weights and batches; a temporary one when not given. */
  readonly work?: string;
  readonly profile: boolean;
  readonly fetchTokenizer: boolean;
}

/** @throws CommanderError, its message printed, for a fault in the arguments */
export function parseOptions(args: readonly string[]): BenchOptions {
  const program = new Command('npm run bench --')
    .description('Measures torchformer and its peers in turn, in one run on the same data.')
    .argument('[suites...]', `of ${suiteNames.join(', ')}; all when none is named`)
    .option('--sizes <names>', `for train: ${sizeNames.join(',')}`, among(sizeNames), [
      'small',
      'base',
    ])
    .option('--dtype <names>', `of our training: ${trainDTypes.join(',')}`, among(trainDTypes), [
      'float32',
    ])
    .option(
      '--peers <names>',
      `for train: ${trainPeers.join(',')}, or none, which leaves out all peers of all suites`,
      peers,
    )
    .option('--jobs <names>', 'for train: timing,equality', among(['timing', 'equality']), [
      'timing',
      'equality',
    ])
    .option('--rounds <count>', 'turns of every participant', integer(1))
    .option('--steps <count>', 'timed steps in a turn (train)', integer(1))
    .option('--warmup <count>', 'steps before the timed ones (train)', integer(0))
    .option('--limit <seconds>', 'after which a participant is ended', integer(1), 600)
    .option('--threads <count>', 'of every participant', integer(1, 1024), availableParallelism())
    .addOption(
      new Option('--data <folder>', 'with multi30k-de-en/ and tatoeba-en-zh/')
        .env('TORCHFORMER_BENCH_DATA')
        .default(fileURLToPath(new URL('../../../shared/data', import.meta.url)), '../shared/data'),
    )
    .addOption(
      new Option('--python <program>', 'with the packages of bench/peers/requirements.txt')
        .env('TORCHFORMER_BENCH_PYTHON')
        .default('python3'),
    )
    .option('--json <file>', 'writes all figures')
    .option('--work <folder>', 'keeps weights and batches there')
    .option('--profile', 'time per op of one of our training steps, in place of the suites', false)
    .option('--fetch-tokenizer', 'fetches what size seed needs, and ends', false)
    .allowExcessArguments(false)
    .showHelpAfterError('Use --help to see what there is.')
    .exitOverride();
  program.parse([...args], { from: 'user' });
  const suites = program.args.length === 0 ? [...suiteNames] : suitesOf(program);
  const given = program.opts<Omit<BenchOptions, 'suites'>>();
  return {
    ...given,
    ...(program.getOptionValue('peers') === undefined ? usualPeers() : {}),
    suites,
  };
}

/** bfloat16 in PyTorch takes AVX-512; without it one small step takes half a minute. */
function usualPeers(): Pick<BenchOptions, 'peers' | 'omitted'> {
  if (instructionSets().includes('avx512f')) return { peers: trainPeers };
  return {
    peers: ['seed', 'tuned-fp32'],
    omitted: 'tuned is left out: bfloat16 is very slow without AVX-512; --peers can name it',
  };
}

function suitesOf(program: Command): SuiteName[] {
  return program.args.map((name) => {
    const suite = suiteNames.find((known) => known === name);
    if (suite === undefined) {
      program.error(`error: there is no suite ${name}; there are ${suiteNames.join(', ')}`);
    }
    return suite;
  });
}

function peers(text: string): TrainPeer[] {
  return text === 'none' ? [] : among(trainPeers)(text);
}

/** A list with commas, each once and in the order of `names`. */
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
