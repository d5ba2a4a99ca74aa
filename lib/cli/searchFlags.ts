/** The flags of commands that translate. */
import { Option, type Command } from 'commander';
import { decodingPrecisions, type DecodingPrecision } from '../decode/native/preparedModel.js';
import type { TooLongAction } from '../decode/translation.js';
import { integer, nonNegativeNumber } from './flagValues.js';

/** The search for a translation. */
export interface SearchFlags {
  beam: number;
  lengthPenalty?: number;
  maxLength?: number;
}

export function addSearchFlags(command: Command): Command {
  return command
    .option('--beam <count>', 'hypotheses that are followed; 1: greedy', integer(1), 1)
    .option(
      '--length-penalty <alpha>',
      'divide scores by length^alpha (default: 1 with a beam)',
      nonNegativeNumber,
    )
    .option(
      '--max-length <tokens>',
      'maximum tokens of an output (default: twice those of the text plus 50)',
      integer(1),
    );
}

/** How fast it goes. */
export interface SpeedFlags {
  batchSize: number;
  precision: DecodingPrecision;
}

export function addSpeedFlags(command: Command): Command {
  return command
    .option('--batch-size <texts>', 'texts translated together', integer(1), 32)
    .addOption(
      new Option('--precision <type>', 'how decoding stores the weights')
        .choices([...decodingPrecisions])
        .default('float32'),
    );
}

/**
 * What to do with a text that is too long.
 *
 * @param actions each with what it does
 */
export function addTooLongFlag(
  command: Command,
  actions: Partial<Readonly<Record<TooLongAction, string>>>,
): Command {
  const told = Object.entries(actions).map(([action, what]) => `${action} ${what}`);
  return command.addOption(
    new Option(
      '--on-too-long <action>',
      `what to do with a text that is too long for the model: ${told.join(', ')}`,
    )
      .choices(Object.keys(actions))
      .default('error'),
  );
}
