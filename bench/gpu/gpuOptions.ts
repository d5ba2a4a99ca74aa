/** The command line of bench/gpu/run.sh. */
import { Command, InvalidArgumentError } from 'commander';
import { resolve } from 'node:path';

export interface GpuOptions {
  /** Where the results go. */
  readonly output: string;
  /** On the CPU, with tiny sizes: whether all of it works before a GPU is at hand. */
  readonly rehearse: boolean;
  /** Seconds in which everything has to be done. */
  readonly limit: number;
  /** Given by the script: the checkout, what was unpacked, and the Python with PyTorch. */
  readonly repository: string;
  readonly tree: string;
  readonly python: string;
}

/** Seconds that a run may take unless told otherwise: machines are lent for ten minutes. */
export const usualLimit = 525;

/** @throws CommanderError, its message printed, for a fault in the arguments */
export function parseGpuOptions(args: readonly string[]): GpuOptions {
  const program = new Command('bash bench/gpu/run.sh')
    .description('Builds, checks and measures torchformer on a machine with a GPU.')
    .argument('<carried>', 'folder that bench/gpu/prepare.cjs made')
    .argument('<output>', 'folder for results.json and results.txt')
    .option('--rehearse', 'on the CPU with tiny sizes', false)
    .option('--limit <seconds>', 'in which everything has to be done', seconds, usualLimit)
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
