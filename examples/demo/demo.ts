/**
 * `npm run demo`: makes a corpus, trains a small translator on it, then tries it in a new process.
 *
 * corpus.ts generates the corpus; nothing is downloaded. The new process loads the saved folder with
 * `Translator.load` and prints the model's outputs unchanged: no rules are applied to them.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  batches,
  findSpecialIds,
  makeModel,
  manualSeed,
  ProgressBar,
  Tokenizer,
  trainCharacters,
  Trainer,
  TranslationDataset,
} from 'torchformer';
import { makeCorpus, type Corpus, type CorpusSide } from './corpus.js';

const settings = {
  seed: 1,
  // The tokens are characters, so even short phrases are long sequences; two layers of width 128 are
  // enough for them.
  model: { N: 2, dModel: 128, dFf: 512, h: 4, dropout: 0, attentionDropout: 0 },
  batchSize: 64,
  epochs: 7,
  learningRate: 2e-3,
  warmup: 300,
};

async function train(out: string): Promise<void> {
  manualSeed(settings.seed);
  const corpus = makeCorpus({ seed: settings.seed });
  printCorpus(corpus);
  const texts = corpus.train.flatMap(({ src, tgt }) => [src, tgt]);
  const tokenizer = Tokenizer.fromJson(await trainCharacters(texts));
  const specialIds = findSpecialIds(tokenizer);
  const dataset = (side: CorpusSide) =>
    TranslationDataset.fromPairs(corpus[side], { tokenizer, specialIds });
  const training = await dataset('train');
  const validation = await dataset('validation');

  const { batchSize, seed, epochs, learningRate, warmup } = settings;
  const model = makeModel(tokenizer.vocabSize, settings.model);
  const steps = epochs * batches(training, { batchSize, bucket: true }).length;
  const trainer = new Trainer(model, {
    specialIds,
    tokenizer,
    out,
    overwrite: true,
    // Warmup, then linear decay to zero: a small model gains its last points of accuracy at the end of
    // training.
    schedule: (step) =>
      learningRate * Math.min(step / warmup, Math.max(0, (steps - step) / (steps - warmup))),
    clip: 1,
    reporter: new ProgressBar(),
  });
  await trainer.fit(
    (epoch) => batches(training, { batchSize, shuffle: true, seed, epoch, bucket: true }),
    { validation: () => batches(validation, { batchSize: 100 }), epochs },
  );
  console.log(`\nLoss curve: ${path.relative(process.cwd(), path.join(out, 'loss.svg'))}`);
}

function printCorpus(corpus: Corpus): void {
  const { train: training, validation, heldOut } = corpus;
  console.log(
    `Corpus from Intl: ${training.length} training pairs, ${validation.length} validation pairs, ` +
      `${heldOut.length} held out by value. For example:`,
  );
  const shown = new Set<string>();
  for (const { kind, src, tgt } of training) {
    if (shown.has(kind)) continue;
    shown.add(kind);
    console.log(`  ${kind.padEnd(15)} ${src}  →  ${tgt}`);
  }
}

const out = path.resolve(process.argv[2] ?? 'runs/demo');
mkdirSync(path.dirname(out), { recursive: true });
await train(out);
const check = spawnSync(
  process.execPath,
  [fileURLToPath(new URL('check.js', import.meta.url)), out, String(settings.seed)],
  { stdio: 'inherit' },
);
process.exitCode = check.status ?? 1;
