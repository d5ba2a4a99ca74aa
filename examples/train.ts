/**
 * Trains a translator on a CSV file, step by step. Use it as the starting point for your own script.
 *
 * ```sh
 * node build/examples/train.js train.csv validate.csv en zh tokenizer.json runs/a
 * ```
 *
 * `torchformer train` does the same with flags.
 */
import {
  batches,
  describeReport,
  describeSpecialIds,
  findSpecialIds,
  makeModel,
  manualSeed,
  Tokenizer,
  Trainer,
  TranslationDataset,
  Translator,
} from 'torchformer';

/** The settings of seed 001. Comments mark those that it reads from a config file it does not show. */
const config = {
  model: { N: 6, dModel: 512, dFf: 2048, h: 8, dropout: 0.1 },
  batchSize: 50,
  /** Not given there. Adam's learning rate, constant after warmup. */
  learningRate: 5e-4,
  /** Not given there; 0 keeps the seed's loop. A large model needs several hundred steps. */
  warmup: 0,
  /** Not given there. */
  epochs: 10,
  /** Longest sentence in tokens; also the length of the position table. */
  maxLength: 200,
  seed: 1,
};

async function run(paths: RunPaths): Promise<void> {
  // Any Hugging Face tokenizer.json works; pad, bos and eos are found by their usual names.
  const tokenizer = await Tokenizer.fromFile(paths.tokenizer);
  const specialIds = findSpecialIds(tokenizer);
  console.log(describeSpecialIds(specialIds));

  const read = async (file: string): Promise<TranslationDataset> => {
    const { src, tgt } = paths;
    const { maxLength } = config;
    const options = { src, tgt, tokenizer, specialIds, maxLength };
    const dataset = await TranslationDataset.fromFile(file, options);
    console.log(describeReport(dataset.report));
    return dataset;
  };
  const trainSet = await read(paths.train);
  const validateSet = await read(paths.validate);

  manualSeed(config.seed);
  const model = makeModel(tokenizer.vocabSize, { ...config.model, maxLen: config.maxLength });
  const trainer = new Trainer(model, {
    specialIds,
    tokenizer,
    columns: { source: paths.src, target: paths.tgt },
    out: paths.out,
    learningRate: config.learningRate,
    warmup: config.warmup,
  });
  const { batchSize, seed, epochs } = config;
  const { best } = await trainer.fit(
    (epoch) => batches(trainSet, { batchSize, shuffle: true, seed, epoch }),
    { epochs, validation: () => batches(validateSet, { batchSize }) },
  );
  trainer.dispose();
  model.dispose();
  console.log(`best epoch: ${best?.epoch}, validation loss ${best?.loss.toFixed(4)}`);

  // The folder contains everything needed to translate, on this or another machine.
  const translator = await Translator.load(paths.out);
  console.log(await translator.translate(['How are you?', 'I like music.']));
  translator.dispose();
}

interface RunPaths {
  train: string;
  validate: string;
  /** Name of the column with the source sentences. */
  src: string;
  /** Name of the column with the target sentences. */
  tgt: string;
  tokenizer: string;
  out: string;
}

const [train, validate, src, tgt, tokenizer, out] = process.argv.slice(2);
if (!train || !validate || !src || !tgt || !tokenizer || !out) {
  console.error('usage: train.js <train.csv> <validate.csv> <src> <tgt> <tokenizer.json> <out>');
  process.exitCode = 2;
} else {
  await run({ train, validate, src, tgt, tokenizer, out });
}
