/**
 * Writes the batches to copy to the machine with a GPU, one `<size>.batches.json` for each size.
 *
 * Arguments: data folder, target folder.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { encodeCorpus } from '../corpora.js';
import type { BatchFile } from '../trainJob.js';
import { cutBatches } from './cutBatches.js';
import { batchCount, gpuSizeNames, gpuSizes } from './gpuSizes.js';

const [data, folder] = process.argv.slice(2) as [string, string];

for (const name of gpuSizeNames) {
  const { corpus, model, batch } = gpuSizes[name];
  const { bos, eos, pairs } = await encodeCorpus(corpus, model.vocabSize, data);
  const file: BatchFile = { bos, eos, batches: cutBatches(pairs, batch, batchCount) };
  await writeFile(join(folder, `${name}.batches.json`), JSON.stringify(file));
}
