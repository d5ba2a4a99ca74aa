/**
 * A process of suite `train`: writes the batches and the initial weights that all participants use.
 * The parent does not do this itself, because a child's peak memory starts at its parent's.
 *
 * Arguments: size, data folder, number of batches, target folder.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeBatches } from './corpora.js';
import { trainSizes, type SizeName } from './sizes.js';
import { writeWeights } from './weights.js';

/** The JSON line that it prints. */
export interface Prepared {
  readonly weights: string;
  readonly batches: string;
  readonly parameters: number;
  /** Share of the padded target positions that are tokens. */
  readonly fill: number;
}

const [name, data, count, folder] = process.argv.slice(2) as [SizeName, string, string, string];
const size = trainSizes[name];

const file = await makeBatches(size, data, Number(count));
const batches = join(folder, `${name}.batches.json`);
await writeFile(batches, JSON.stringify(file));

const weights = join(folder, `${name}.safetensors`);
const parameters = await writeWeights(size.model, weights);

let tokens = 0;
let positions = 0;
for (const pairs of file.batches) {
  const lengths = pairs.map(({ tgt }) => tgt.length - 1);
  tokens += lengths.reduce((sum, length) => sum + length, 0);
  positions += lengths.length * Math.max(...lengths);
}
const prepared: Prepared = {
  weights,
  batches,
  parameters,
  fill: tokens / positions,
};
console.log(JSON.stringify(prepared));
