/** The command line of bench/gpu/run.sh. */
import { Command, InvalidArgumentError } from 'commander';
import { resolve } from 'node:path';

export interface GpuOptions {
  /** Folder for the results. */
  readonly output: string;
  /** Runs on the CPU with tiny sizes, to check that everything works before a GPU is available. */
  readonly rehearse: boolean;
  /** Seconds in which everything must be finished. */
  readonly limit: number;
  /** Set by the script: the checkout, the unpacked files, and the Python with PyTorch. */
  readonly repository: string;
  readonly tree: string;
  readonly python: string;
}

/** Default limit of a run in seconds: it fits into ten minutes of machine time. */
export const usualLimit = 525;

/** @throws CommanderError for invalid arguments, after printing its message */
export function parseGpuOptions(args: readonly string[]): GpuOptions {
  const program = new Command('bash bench/gpu/run.sh')
    .description('Builds, checks and measures torchformer on a machine with a GPU.')
    .argument('<carried>', 'folder that bench/gpu/prepare.cjs made')
    .argument('<output>', 'folder for results.json and results.txt')
    .option('--rehearse', 'on the CPU with tiny sizes', false)
    .option('--limit <seconds>', 'time in which everything must be finished', seconds, usualLimit)
    .requiredOption('--repository <folder>', 'given by the script')
    .requiredOption('--tree <folder>', 'given by the script')
    .requiredOption('--python <program>', 'given by the script')
    .allowExcessArguments(false)
    .exitOverride();
  program.parse([...args], { from: 'user' });
  const given = program.opts<Omit<GpuOptions, 'output'>>();
  return { ...given, output: resolve(program.args[1]!) };
}

function seconds(text: string): number {
  const value = /^\d+$/.test(text) ? Number(text) : NaN;
  if (!(value >= 10 && value <= 86_400)) {
    throw new InvalidArgumentError('It must be a number of seconds from 10 to 86400.');
  }
  return value;
}
