/** Data, files, decoding and training, around one tiny tokenizer and model. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as tf from '../../dist/index.js';
import { mutate } from './mutate.mjs';
import { anything, ids, odd, tensor } from './values.mjs';

const pairs = [
  { src: 'one two', tgt: 'un deux' },
  { src: 'two', tgt: 'deux' },
  { src: 'three one', tgt: 'trois un' },
];
const tokenizer = tf.Tokenizer.fromJson(
  await tf.trainBpe(
    pairs.flatMap(({ src, tgt }) => [src, tgt]),
    { vocabSize: 280 },
  ),
);
const { vocabSize } = tokenizer;
const specialIds = { pad: 0, bos: 1, eos: 2, ...pick3(tf.findSpecialIds(tokenizer)) };
const dataset = await tf.TranslationDataset.fromPairs(pairs, { tokenizer, specialIds });
const folder = mkdtempSync(join(tmpdir(), 'torchformer-fuzz-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));

function pick3({ pad, bos, eos }) {
  return { pad, bos, eos };
}

const model = (size = vocabSize) =>
  tf.makeModel(size, { N: 1, dModel: 4, dFf: 4, h: 2, dropout: 0, maxLen: 12 });

const tokenPairs = (r) =>
  r.list(1, 3, (row) => ({
    src: r.list(1, 4, () => r.below(20)),
    tgt: r.list(2, 4, () => r.below(20)),
    row,
  }));

/** Owner and method → good arguments. */
const calls = {
  'batches()': (r) => [
    tf.batches,
    [
      dataset,
      { batchSize: 2, shuffle: r.chance(50), seed: 1, bucket: r.chance(30), device: 'cpu' },
    ],
    (result) => [...result],
  ],
  'batches() by tokens': () => [
    tf.batches,
    [dataset, { tokens: 9, epoch: 1 }],
    (result) => [...result],
  ],
  'makeBatch()': (r) => [tf.makeBatch, [tokenPairs(r), specialIds.pad]],
  'padSequences()': (r) => [
    tf.padSequences,
    [r.list(1, 3, () => r.list(0, 4, () => r.below(9))), 0],
  ],
  'new TranslationDataset()': (r) => [
    (...args) => new tf.TranslationDataset(...args),
    [tokenPairs(r), { specialIds, vocabSize }],
  ],
  'TranslationDataset.fromPairs()': () => [
    (...args) => tf.TranslationDataset.fromPairs(...args),
    [pairs, { tokenizer, specialIds, maxLength: 9 }],
  ],
  'encodePairs()': () => [tf.encodePairs, [pairs, { tokenizer, specialIds }]],
  'frame()': () => [tf.frame, [[3, 4], specialIds]],
  'checkSpecialIds()': () => [tf.checkSpecialIds, [specialIds, vocabSize]],
  'findSpecialIds()': () => [tf.findSpecialIds, [tokenizer, {}]],
  'describeSpecialIds()': () => [tf.describeSpecialIds, [tf.findSpecialIds(tokenizer)]],
  'describeReport()': () => [tf.describeReport, [tf.newReport('name')]],
  'newReport()': () => [tf.newReport, ['name']],
  SeededRandom: (r) => [
    (...args) => new tf.SeededRandom(...args),
    [r.below(9), 1],
    (random) => random[r.pick(['below', 'pick', 'shuffle', 'next'])](anything(r)),
  ],
  'Tokenizer.fromJson()': (r) => [
    (...args) => tf.Tokenizer.fromJson(...args),
    [r.chance(50) ? JSON.parse(tokenizer.toJson()) : spoiltText(r, tokenizer.toJson())],
  ],
  'tokenizer.encode()': () => [(...args) => tokenizer.encode(...args), ['one two', {}]],
  'tokenizer.encodeWithOffsets()': () => [
    (...args) => tokenizer.encodeWithOffsets(...args),
    ['one', {}],
  ],
  'tokenizer.encodeBatch()': () => [
    (...args) => tokenizer.encodeBatch(...args),
    [['one', 'two'], {}],
  ],
  'tokenizer.decode()': () => [(...args) => tokenizer.decode(...args), [[3, 4, 5], {}]],
  'tokenizer.decodeBatch()': () => [
    (...args) => tokenizer.decodeBatch(...args),
    [[[3], [4, 5]], {}],
  ],
  'tokenizer.idOf()': () => [(...args) => tokenizer.idOf(...args), ['one']],
  'tokenizer.tokenOf()': () => [(...args) => tokenizer.tokenOf(...args), [3]],
  'trainBpe()': () => [tf.trainBpe, [['a b', 'c'], { vocabSize: 262, minFrequency: 1 }]],
  'trainCharacters()': () => [tf.trainCharacters, [['a b', 'c'], { vocabSize: 20 }]],
  'readPairs()': (r) => [
    (...args) => tf.readPairs(...args),
    [
      [
        new TextEncoder().encode(
          r.pick(['a,b\n1,2\n', 'a,b\n"1,2\n', 'a,b\n1\n', '\ufeffa,b\n,\n', '']),
        ),
      ],
      { src: 'a', tgt: 'b', onMalformed: r.pick(['skip', 'error']) },
    ],
    async (result) => {
      const rows = [];
      for await (const row of (await result).pairs ?? []) rows.push(row);
      return rows;
    },
  ],
  'greedy()': (r) => [
    tf.greedy,
    [
      model(),
      ids(r, [2, 3], 20),
      tf.ones([2, 1, 3], { dtype: 'bool' }),
      { ...specialIds, maxLength: 4 },
    ],
  ],
  RecomputingStepDecoder: (r) => [
    (...args) => new tf.RecomputingStepDecoder(...args),
    [model(), ids(r, [2, 3], 20), tf.ones([2, 1, 3], { dtype: 'bool' }), specialIds.bos],
    (decoder) => {
      decoder.next();
      decoder.append(r.chance(50) ? tf.tensor([3n, 4n]) : anything(r));
      decoder.select(r.chance(50) ? tf.tensor([1n]) : anything(r));
      const result = decoder.next();
      decoder.dispose();
      return result;
    },
  ],
  'new Translator().translate()': (r) => [
    (...args) => new tf.Translator(...args),
    [model(), { tokenizer, specialIds }],
    (translator) =>
      translator.translate(...mutate(r, [['one', 'two'], { batchSize: 2, maxLength: 3 }])),
  ],
  'Translator.load()': (r) => [
    (...args) => tf.Translator.load(...args),
    [r.pick([folder, join(folder, 'none'), 'a\0b']), {}],
  ],
  'tokenLossSum()': (r) => [
    tf.tokenLossSum,
    [model(), tf.makeBatch(tokenPairs(r), 0), 0, { scale: 1 }],
  ],
  'evaluate()': (r) => [
    tf.evaluate,
    [model(), tf.batches(dataset, { batchSize: 2 }), { pad: specialIds.pad, epoch: r.below(3) }],
  ],
  'new Trainer().fit()': (r) => [
    (...args) => new tf.Trainer(...args),
    [
      model(),
      {
        specialIds,
        learningRate: r.pick([0.1, 1e30]),
        nonFinite: r.pick(['stop', 'skip']),
        clip: 1,
        accumulate: r.pick([1, 2]),
        dtype: r.pick(['float32', 'bfloat16']),
        reporter: null,
      },
    ],
    (trainer) =>
      trainer.fit(...mutate(r, [() => tf.batches(dataset, { batchSize: 2 }), { epochs: 1 }])),
  ],
  'historyJson()': () => [
    tf.historyJson,
    [{ steps: [], validationBatches: [], validations: [], epochs: [] }],
  ],
  'lossCurve()': () => [
    tf.lossCurve,
    [
      {
        steps: [{ step: 1, epoch: 1, loss: 2, tokens: 3 }],
        validationBatches: [],
        validations: [],
        epochs: [],
      },
      { width: 300 },
    ],
  ],
  'new TokenMean().add()': () => [(...args) => new tf.TokenMean().add(...args), [1.5, 3]],
  'new BestModel().consider()': () => [(...args) => new tf.BestModel().consider(...args), [1, 0.5]],
  'writeSafetensors()': (r) => [
    tf.writeSafetensors,
    [join(folder, 'a.safetensors'), { x: tensor(r), y: tensor(r) }, { made: 'by a test' }],
  ],
  'readSafetensors()': (r) => [tf.readSafetensors, [spoiltFile(r)], readAll],
  'loadModel()': (r) => [tf.loadModel, [r.pick([folder, join(folder, 'x'), '']), {}]],
  'findModelFolder()': () => [tf.findModelFolder, [folder]],
  'saveModel()': () => [tf.saveModel, [join(folder, 'model'), model(), { specialIds, tokenizer }]],
};

function spoiltText(r, text) {
  const at = r.below(text.length);
  return r.pick([
    text,
    text.slice(0, at),
    `${text.slice(0, at)}${r.pick(['"', '}', '9', ''])}${text.slice(at + 1)}`,
  ]);
}

const sound = join(folder, 'sound.safetensors');
await tf.writeSafetensors(sound, { a: tf.ones([3, 2]), b: tf.zeros([2], { dtype: 'int64' }) });

/** A file of tensors with a few wrong bytes, or cut off. */
function spoiltFile(r) {
  const bytes = Buffer.from(readFileSync(sound));
  for (let count = r.below(4); count > 0; count--) {
    // Most faults belong into the header.
    bytes[r.below(r.chance(80) ? 130 : bytes.length) % bytes.length] = r.below(256);
  }
  const file = join(folder, 'spoilt.safetensors');
  writeFileSync(file, r.chance(20) ? bytes.subarray(0, r.below(bytes.length)) : bytes);
  return file;
}

async function readAll(opened) {
  const file = await opened;
  try {
    return await file.tensors();
  } finally {
    await file.close?.();
  }
}

/** One of these; a wrong path must not lead out of the test's own folder. */
export function pipelineCall(r) {
  const name = r.pick(Object.keys(calls));
  const [call, good, use] = calls[name](r);
  const writes = /^(write|save)/.test(name);
  const [path, ...others] = good;
  const args = writes
    ? [
        r.chance(90) ? path : r.pick([undefined, null, 1, {}, join(folder, 'a\0b')]),
        ...mutate(r, others),
      ]
    : mutate(r, good);
  // A folder to write to is no option to invent.
  const safe = args.map((one) => (one?.constructor === Object && 'out' in one ? odd(r) : one));
  return {
    name,
    args: safe,
    run: () => {
      const result = call(...safe);
      if (use === undefined || result === undefined || result === null) return result;
      return use(result);
    },
  };
}
