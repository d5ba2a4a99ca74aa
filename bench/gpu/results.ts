/** results.json and results.txt, written after every part, so that an interrupted run keeps its results. */
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describeResults, type Results } from './describeResults.js';

/** @param folder an existing folder */
export async function writeResults(folder: string, results: Results): Promise<void> {
  await replace(join(folder, 'results.json'), `${JSON.stringify(results, null, 2)}\n`);
  await replace(join(folder, 'results.txt'), `${describeResults(results)}\n`);
}

/** Never leaves an incomplete file, even if the run is interrupted. */
async function replace(file: string, text: string): Promise<void> {
  await writeFile(`${file}.part`, text);
  await rename(`${file}.part`, file);
}
