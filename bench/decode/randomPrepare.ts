/**
 * A process of suite `decode`: writes a new model that never ends a target, and draws sources.
 *
 * Arguments: size, number of sources, target folder.
 */
import { join } from 'node:path';
import { makeModel, manualSeed, SeededRandom } from 'torchformer';
import type { PreparedDecoding } from './decodeJob.js';
import { decodeModels, sourceLength, type DecodeSizeName } from './decodeModels.js';
import { writeForbidding } from './forbiddenIds.js';
import { ownPrecisions } from './searches.js';

const [name, count, folder] = process.argv.slice(2) as [DecodeSizeName, string, string];
const size = decodeModels[name];
const { vocabSize, ...widths } = size;
const specialIds = { pad: 0, bos: 1, eos: 2 };

manualSeed(1);
const model = makeModel(vocabSize, widths);
const weights = join(folder, `${name}.decode.safetensors`);
// All targets have the same length, so that all participants do the same work.
await writeForbidding(model, Object.values(specialIds), weights);

const random = new SeededRandom(1);
const words = vocabSize - 3;
const prepared: PreparedDecoding = {
  model: size,
  maxLen: model.config!.maxLen,
  weights,
  specialIds,
  sources: Array.from({ length: Number(count) }, () => [
    specialIds.bos,
    ...Array.from({ length: sourceLength - 2 }, () => 3 + random.below(words)),
    specialIds.eos,
  ]),
  ownPrecisions: ownPrecisions(model, specialIds),
};
console.log(JSON.stringify(prepared));
