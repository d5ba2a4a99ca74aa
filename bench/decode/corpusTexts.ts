/**
 * A process of suite `decode`: turns the ids of translations into texts for bleu.py.
 *
 * Arguments: model or run folder, file of ids by participant, file of references, target file.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { loadModel } from 'torchformer';

const [folder, idsFile, referencesFile, target] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
];
const { tokenizer } = await loadModel(folder);
const ids = JSON.parse(await readFile(idsFile, 'utf8')) as Record<string, number[][]>;
const references = JSON.parse(await readFile(referencesFile, 'utf8')) as string[];
const systems: Record<string, string[]> = {};
for (const [name, rows] of Object.entries(ids)) {
  systems[name] = await tokenizer!.decodeBatch(rows);
}
await writeFile(target, JSON.stringify({ references, systems }));
console.log(JSON.stringify({ systems: Object.keys(systems).length }));
