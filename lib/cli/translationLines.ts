/** Files with a translation on each line, for the rows of a file of sentence pairs. */
import { readLines } from '../data/reading/lineReader.js';
import type { SentencePair } from '../data/reading/pairReader.js';
import type { DataReport } from '../data/report.js';
import { isBlank, maxTextLength } from '../data/text.js';
import { counted } from '../runtime/counted.js';
import { TorchError } from '../runtime/errors.js';

/**
 * Reads a translation for each pair: line n is that of row n of the data. A file may also have a line for
 * each pair only, without lines for the rows that were left out.
 *
 * @param report of the data
 * @throws TorchError ERR_DATA if the file cannot be read or is not UTF-8, if a line is too long, or naming
 *   both numbers if there are not as many lines as rows
 */
export async function readTranslations(
  file: string,
  pairs: readonly SentencePair[],
  report: DataReport,
): Promise<string[]> {
  const lines: string[] = [];
  for await (const group of readLines(file, file)) {
    for (const { number, text } of group) {
      if (text === null) {
        const most = maxTextLength.toLocaleString('en-US');
        throw fault(`${file}: line ${number} has more than ${most} characters`);
      }
      lines.push(text);
    }
  }
  if (lines.length === report.rows) return pairs.map(({ row }) => lines[row - 1] as string);
  if (lines.length === pairs.length) return lines;
  const kept =
    pairs.length === report.rows ? '' : `, ${pairs.length} of them with source and target`;
  throw fault(
    `${file} has ${counted(lines.length, 'line')}, but ${report.name} has ` +
      `${counted(report.rows, 'row')}${kept}; a line is the translation of a row`,
  );
}

/** The lines of a file with a translation for each row; those of rows that were left out are empty. */
export function translationLines(
  translations: readonly string[],
  pairs: readonly SentencePair[],
  report: DataReport,
): string[] {
  const lines = Array.from({ length: report.rows }, () => '');
  pairs.forEach(({ row }, index) => (lines[row - 1] = translations[index] as string));
  return lines;
}

/** How many translations have no visible character. */
export function countBlank(translations: readonly string[]): number {
  return translations.filter(isBlank).length;
}

function fault(message: string): TorchError {
  return new TorchError('ERR_DATA', message);
}
