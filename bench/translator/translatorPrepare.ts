/**
 * A process of suite `translator`: what our run was given, for the peer. The same ids, the same batches in
 * the same order, and the same initial weights, made again from the run's own settings.
 *
 * Arguments: run folder, training file, validation file, number of epochs, target folder.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  batches,
  loadModel,
  makeModel,
  manualSeed,
  Tokenizer,
  TranslationDataset,
  writeSafetensors,
  type BatchOptions,
} from 'torchformer';
import { parse } from 'yaml';

interface Config {
  readonly data: { readonly src: string; readonly tgt: string; readonly 'max-length': number };
  readonly training: Readonly<Record<string, number>> & { readonly bucket: boolean };
}

const [run, train, validate, epochs, folder] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  string,
];
const { data, training } = parse(await readFile(join(run, 'config.yaml'), 'utf8')) as Config;
const { model: best, config } = await loadModel(join(run, 'last'));
best.dispose();
const tokenizer = await Tokenizer.fromFile(join(run, 'last', 'tokenizer.json'));
const { specialIds } = config;
if (specialIds === null) throw new Error(`${run} has no special ids`);
const read = (file: string) =>
  TranslationDataset.fromFile(file, {
    src: data.src,
    tgt: data.tgt,
    tokenizer,
    specialIds,
    maxLength: data['max-length'],
  });
const [trainSet, validationSet] = [await read(train), await read(validate)];
const options: BatchOptions = { tokens: training['batch-tokens'], bucket: training.bucket };
const seed = training['seed'] ?? 1;

/** The row numbers of the batches of a pass. */
function rowsOf(dataset: TranslationDataset, more: BatchOptions): number[][] {
  return Array.from(batches(dataset, { ...options, ...more }), (batch) => {
    batch.dispose();
    return [...batch.rows];
  });
}
const indexOfRow = new Map(trainSet.pairs.map(({ row }, index) => [row, index]));
const orders = Array.from({ length: Number(epochs) }, (_, index) =>
  rowsOf(trainSet, { shuffle: true, seed, epoch: index + 1 }).map((rows) =>
    rows.map((row) => indexOfRow.get(row)),
  ),
);
const byRow = new Map(validationSet.pairs.map((pair) => [pair.row, pair]));
const validation = rowsOf(validationSet, {}).map((rows) => rows.map((row) => byRow.get(row)));
const pairs = join(folder, 'pairs.json');
await writeFile(pairs, JSON.stringify({ training: trainSet.pairs, validation, epochs: orders }));

const { vocabSize, ...modelOptions } = config.model;
manualSeed(seed);
const model = makeModel(vocabSize, modelOptions);
const weights = join(folder, 'initial.safetensors');
await writeSafetensors(weights, model.stateDict());
const { N, dModel, dFf, h } = config.model;
console.log(
  JSON.stringify({
    model: { vocabSize, N, dModel, dFf, h },
    dropout: config.model.dropout,
    weights,
    pairs,
    betas: [training['beta1'], training['beta2'] ?? 0.98],
    eps: training['eps'] ?? 1e-9,
    warmup: training['warmup'] ?? 4000,
    factor: training['lr'] ?? 1,
    labelSmoothing: training['label-smoothing'],
    seed,
  }),
);
