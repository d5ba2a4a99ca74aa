/**
 * Fine-tunes a translator twice: first with a vocabulary that grew, then with low-rank updates (LoRA). The
 * languages are toys, so that it takes half a minute: English number words become digits.
 *
 * ```sh
 * node build/examples/finetune.js [folder]
 * ```
 *
 * 1. A general model learns numbers: "forty two" → "42".
 * 2. A model with new tokens starts from it and learns prices: "forty two euros" → "€42". The average of
 *    its weights over the steps is saved.
 * 3. Low-rank updates of that model learn another style, "forty two euros" → "42 EUR". They are saved as a
 *    small file, and merged into an ordinary model.
 */
import { statSync } from 'node:fs';
import path from 'node:path';
import {
  Adam,
  applyLora,
  batches,
  describeInitialization,
  ExponentialMovingAverage,
  findSpecialIds,
  initializeFrom,
  loadModel,
  makeModel,
  manualSeed,
  mergeLora,
  saveLora,
  saveModel,
  Tokenizer,
  trainCharacters,
  Trainer,
  TranslationDataset,
  Translator,
  type ModelOptions,
  type TrainingOptimizer,
  type Transformer,
} from 'torchformer';

const settings = {
  seed: 1,
  model: { N: 1, dModel: 64, dFf: 128, h: 4, dropout: 0, maxLen: 64 } satisfies ModelOptions,
  batchSize: 25,
  /** The first starts from nothing; fine-tuning starts close to its aim. */
  general: { epochs: 40, learningRate: 3e-3 },
  prices: { epochs: 20, learningRate: 3e-3 },
  /** Few numbers take larger steps. */
  otherStyle: { epochs: 40, learningRate: 1e-2 },
};

interface Pair {
  src: string;
  tgt: string;
}

/** 80 numbers, from twenty to ninety nine, with the target in one of three styles. */
function numberPairs(style: (words: string, digits: string) => Pair): Pair[] {
  const ones = [
    '',
    ' one',
    ' two',
    ' three',
    ' four',
    ' five',
    ' six',
    ' seven',
    ' eight',
    ' nine',
  ];
  const tens = ['twenty', 'thirty', 'forty', 'fifty', 'sixty', 'seventy', 'eighty', 'ninety'];
  return tens.flatMap((ten, index) =>
    ones.map((one, digit) => style(`${ten}${one}`, String(10 * (index + 2) + digit))),
  );
}

const general = numberPairs((words, digits) => ({ src: words, tgt: digits }));
const prices = numberPairs((words, digits) => ({ src: `${words} euros`, tgt: `€${digits}` }));
const otherStyle = numberPairs((words, digits) => ({
  src: `${words} euros`,
  tgt: `${digits} EUR`,
}));

async function tokenizerOf(...corpora: Pair[][]): Promise<Tokenizer> {
  const texts = corpora.flat().flatMap(({ src, tgt }) => [src, tgt]);
  return Tokenizer.fromJson(await trainCharacters(texts));
}

interface Training {
  model: Transformer;
  tokenizer: Tokenizer;
  pairs: Pair[];
  epochs: number;
  learningRate: number;
}

/** Trains the parameters that are not frozen; returns the average of the weights over the steps. */
async function train({ model, tokenizer, pairs, epochs, learningRate }: Training) {
  const specialIds = findSpecialIds(tokenizer);
  const dataset = await TranslationDataset.fromPairs(pairs, { tokenizer, specialIds });
  const average = new ExponentialMovingAverage(model, { decay: 0.98, warmup: true });
  const adam = new Adam(model.parameters().filter(({ requiresGrad }) => requiresGrad));
  // The average takes in the weights after each step.
  const optimizer: TrainingOptimizer = {
    lr: learningRate,
    zeroGrad: () => adam.zeroGrad(),
    async stepAsync() {
      adam.lr = this.lr;
      await adam.stepAsync();
      await average.updateAsync();
    },
  };
  const trainer = new Trainer(model, {
    specialIds,
    tokenizer,
    optimizer,
    learningRate,
    warmup: 20,
    clip: 1,
    reporter: null,
  });
  const { batchSize, seed } = settings;
  const { history } = await trainer.fit(
    (epoch) => batches(dataset, { batchSize, shuffle: true, seed, epoch }),
    { epochs },
  );
  trainer.dispose();
  adam.dispose();
  console.log(`  loss ${history.epochs.at(-1)?.trainLoss?.toFixed(3)} after ${epochs} epochs`);
  return average;
}

/** Counts the sentences that a model translates without a fault. */
async function test(folder: string, pairs: Pair[]): Promise<void> {
  const translator = await Translator.load(folder);
  const outputs = await translator.translate(pairs.map(({ src }) => src));
  const right = outputs.filter((output, index) => output === pairs[index]?.tgt).length;
  const [example] = pairs.slice(22);
  console.log(`  "${example?.src}" → "${outputs[22]}"; ${right} of ${pairs.length} are right`);
  await translator.close();
}

const out = path.resolve(process.argv[2] ?? 'runs/finetune');
const folders = {
  general: path.join(out, 'general'),
  prices: path.join(out, 'prices'),
  otherStyle: path.join(out, 'other-style'),
};
manualSeed(settings.seed);

console.log('1. a general model');
const smallTokenizer = await tokenizerOf(general);
const generalModel = makeModel(smallTokenizer.vocabSize, settings.model);
const generalAverage = await train({
  model: generalModel,
  tokenizer: smallTokenizer,
  pairs: general,
  ...settings.general,
});
generalAverage.copyTo();
await saveModel(folders.general, generalModel, {
  tokenizer: smallTokenizer,
  specialIds: findSpecialIds(smallTokenizer),
});
await test(folders.general, general);

console.log('\n2. fine-tuned for prices, with new tokens');
const tokenizer = await tokenizerOf(general, prices, otherStyle);
const specialIds = findSpecialIds(tokenizer);
const model = makeModel(tokenizer.vocabSize, settings.model);
const report = await initializeFrom(model, folders.general, { tokenizer });
console.log(`  ${describeInitialization(report).replaceAll('\n', '\n  ')}`);
const average = await train({ model, tokenizer, pairs: prices, ...settings.prices });
// With the averages in the place of the weights.
await average.withAverages(() => saveModel(folders.prices, model, { tokenizer, specialIds }));
await test(folders.prices, prices);

console.log('\n3. another style, by low-rank updates');
const { model: updated } = await loadModel(folders.prices);
const layers = applyLora(updated, {
  rank: 8,
  alpha: 16,
  targets: ['*.linears.*', '*.feed_forward.*', 'generator.proj'],
});
const trained = updated.parameterCount({ trainable: true });
console.log(
  `  ${layers.length} layers, ${trained} of ${updated.parameterCount()} parameters trained`,
);
const updates = await train({
  model: updated,
  tokenizer,
  pairs: otherStyle,
  ...settings.otherStyle,
});
updates.copyTo();
const file = path.join(out, 'other-style.safetensors');
await saveLora(file, updated);
mergeLora(updated);
await saveModel(folders.otherStyle, updated, { tokenizer, specialIds });
const size = (name: string) => Math.round(statSync(name).size / 1024);
const whole = path.join(folders.otherStyle, 'model.safetensors');
console.log(`  the updates take ${size(file)} KiB, the model ${size(whole)} KiB`);
await test(folders.otherStyle, otherStyle);
