/** The `torchformer` command: one file per subcommand; errors become a message and exit code 1. */
import { Command, CommanderError } from 'commander';
import { packageVersion } from '../runtime/package.js';
import { registerAverage } from './average.js';
import { registerDoctor } from './doctor.js';
import { registerEvaluate } from './evaluate.js';
import { registerReport } from './report.js';
import { registerServe } from './serve.js';
import { registerSetup } from './setup.js';
import { registerTrain } from './train/train.js';
import { registerTranslate } from './translate.js';
import { watchOutput } from './outputStreams.js';
import { commandWording } from './wording.js';

/**
 * Runs the command line.
 *
 * @param args without `node` and the script
 * @returns the exit code
 */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  const output = watchOutput();
  try {
    await makeProgram().parseAsync([...args], { from: 'user' });
    const fault = await output.fault();
    if (fault !== null) throw fault;
    // A command that fails without an error has set the exit code itself.
    return Number(process.exitCode ?? 0);
  } catch (error) {
    // Commander has printed its message, or the requested help.
    if (error instanceof CommanderError) return error.exitCode;
    process.stderr.write(`${describeFailure(error)}\n`);
    return 1;
  }
}

function makeProgram(): Command {
  const program = new Command('torchformer')
    .description('Train Transformer translators and translate with them.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'display help for the command')
    .showHelpAfterError('Use --help to list the commands and options.')
    .exitOverride()
    .configureHelp({ showGlobalOptions: false });
  registerTrain(program);
  registerTranslate(program);
  registerEvaluate(program);
  registerAverage(program);
  registerReport(program);
  registerServe(program);
  registerSetup(program);
  registerDoctor(program);
  return program;
}

/** One message without a stack, because the cause is the user's input or machine. */
function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return `torchformer: ${String(error)}`;
  if (process.env['TORCHFORMER_DEBUG']) return error.stack ?? error.message;
  const { code } = error as NodeJS.ErrnoException;
  return `torchformer: ${commandWording(error.message)}${code === undefined ? '' : ` [${code}]`}`;
}
