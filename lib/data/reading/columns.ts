import { TorchError } from '../../runtime/errors.js';
import type { Row } from './rowReader.js';

/** The requested columns: by name, or by number from 1 in a file without a header. */
export interface WantedColumns {
  src: string | number;
  tgt: string | number;
}

/** The columns of source and target (from 0), and how many cells each row must have. */
export interface Columns {
  src: number;
  tgt: number;
  count: number;
}

/**
 * Finds the columns of source and target in the first row.
 *
 * @throws TorchError ERR_DATA for a missing or repeated column, with the names found
 */
export function findColumns(first: Row, wanted: WantedColumns, name: string): Columns {
  const { cells } = first;
  if (typeof wanted.src === 'number' || typeof wanted.tgt === 'number') {
    for (const column of [wanted.src, wanted.tgt] as number[]) {
      if (column > cells.length) {
        throw new TorchError(
          'ERR_DATA',
          `${name}: there is no column ${column}; the first row has ${cells.length}`,
        );
      }
    }
    const [src, tgt] = [wanted.src as number, wanted.tgt as number];
    return { src: src - 1, tgt: tgt - 1, count: cells.length };
  }
  const found = cells.map((cell) => JSON.stringify(cell)).join(', ');
  const repeated = cells.filter((cell, index) => cell !== '' && cells.indexOf(cell) !== index);
  if (repeated.length > 0) {
    const names = [...new Set(repeated)].map((cell) => JSON.stringify(cell)).join(', ');
    throw new TorchError(
      'ERR_DATA',
      `${name}: the header has ${names} more than once; the columns found are ${found}`,
    );
  }
  return {
    src: columnNamed(wanted.src, cells, found, name),
    tgt: columnNamed(wanted.tgt, cells, found, name),
    count: cells.length,
  };
}

function columnNamed(wanted: string, cells: string[], found: string, name: string): number {
  const index = cells.indexOf(wanted);
  if (index >= 0) return index;
  const plain = (text: string): string => text.trim().toLowerCase();
  const near = cells.find((cell) => plain(cell) === plain(wanted));
  const hint =
    near !== undefined
      ? `; ${JSON.stringify(near)} differs from it only in spaces or case`
      : cells.length === 1 && /[;|\t:]/.test(cells[0] as string)
        ? '; does the file use another delimiter (option delimiter)?'
        : '; a file without a header is read with header: false and columns by number';
  throw new TorchError(
    'ERR_DATA',
    `${name}: there is no column ${JSON.stringify(wanted)}; the columns found are ${found}${hint}`,
  );
}
