/** results.json and results.txt, written after every part: a run that is ended leaves what it found. */
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describeResults, type Results } from './describeResults.js';

/** @param folder is there */
export async function writeResults(folder: string, results: Results): Promise<void> {
  await replace(join(folder, 'results.json'), `${JSON.stringify(results, null, 2)}\n`);
  await replace(join(folder, 'results.txt'), `${describeResults(results)}\n`);
}

/** Nobody finds half a file, whenever the run is ended. */
async function replace(file: string, text: string): Promise<void> {
  await writeFile(`${file}.part`, text);
  await rename(`${file}.part`, file);
}
