/** The flags of commands that read a file of sentence pairs. */
import { Option, type Command } from 'commander';
import { readPairs, type SentencePair } from '../data/reading/pairReader.js';
import type { DataReport } from '../data/report.js';
import { delimiter, nonEmpty } from './flagValues.js';

/** How the file is read. */
export interface DataFlags {
  src: string;
  tgt: string;
  format: 'auto' | 'csv' | 'tsv';
  delimiter?: string;
  quotes: boolean;
  onMalformed: 'error' | 'skip';
}

/** The columns, which must be given. */
export function addColumnFlags(command: Command): Command {
  return command
    .requiredOption('--src <column>', 'name of the column with the source sentences', nonEmpty)
    .requiredOption('--tgt <column>', 'name of the column with the target sentences', nonEmpty);
}

/** How rows and cells are told apart. */
export function addFormatFlags(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--format <format>',
        'format of the files; auto: the one in which the first row has both columns',
      )
        .choices(['auto', 'csv', 'tsv'])
        .default('auto'),
    )
    .option(
      '--delimiter <character>',
      'character between cells, or tab (default: depends on the format)',
      delimiter,
    )
    .option('--no-quotes', 'treat quotes as ordinary characters (default: only in TSV)')
    .addOption(
      new Option(
        '--on-malformed <action>',
        'what to do with a row that has the wrong number of cells',
      )
        .choices(['error', 'skip'])
        .default('error'),
    );
}

/** Reads the pairs of a file. @throws as `readPairs` */
export async function readPairsOf(
  file: string,
  { src, tgt, format, delimiter: character, quotes, onMalformed }: DataFlags,
  signal: AbortSignal,
): Promise<{ pairs: SentencePair[]; report: DataReport }> {
  const quoted = quotes ? undefined : false;
  const options = { src, tgt, format, delimiter: character, quoted, onMalformed, signal };
  return readPairs(file, options);
}
