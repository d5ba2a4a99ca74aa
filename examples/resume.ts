/**
 * A run that is stopped and continued: it ends with the weights of a run that was not interrupted, to the bit.
 * Its weights are averaged over the steps, and some of its models are kept. The task is a toy.
 *
 * ```sh
 * node build/examples/resume.js [folder]
 * ```
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import {
  averageModels,
  batches,
  findSpecialIds,
  makeModel,
  manualSeed,
  saveModel,
  selectCheckpoints,
  Tokenizer,
  trainCharacters,
  Trainer,
  TranslationDataset,
  type FitResult,
} from 'torchformer';

const folder = process.argv[2] ?? path.join('runs', 'resume');
const tens = ['twenty', 'thirty', 'forty', 'fifty', 'sixty', 'seventy', 'eighty', 'ninety'];
const ones = ['', ' one', ' two', ' three', ' four', ' five', ' six', ' seven', ' eight', ' nine'];
const pairs = tens.flatMap((ten, first) =>
  ones.map((one, second) => ({ src: ten + one, tgt: `${first + 2}${second}` })),
);
const tokenizer = Tokenizer.fromJson(
  await trainCharacters(pairs.flatMap(({ src, tgt }) => [src, tgt])),
);
const specialIds = findSpecialIds(tokenizer);
const dataset = await TranslationDataset.fromPairs(pairs, { tokenizer, specialIds });

/** What a new process does with the same script; `resume` continues what is in `out`. */
async function train(out: string, stopAfter = Infinity): Promise<FitResult> {
  manualSeed(1);
  const model = makeModel(tokenizer.vocabSize, { N: 1, dModel: 64, dFf: 128, h: 4, dropout: 0.1 });
  const trainer = new Trainer(model, {
    specialIds,
    tokenizer,
    learningRate: 3e-3,
    out: path.join(folder, out),
    resume: true,
    saveEvery: 10,
    keepLast: 3,
    averaging: { decay: 0.95 },
    reporter: null,
  });
  // In a real run, Ctrl-C, a time limit, or the loss of the machine.
  const stop = new AbortController();
  trainer.on('step', ({ step }) => {
    if (step === stopAfter) stop.abort();
  });
  const all = batches(dataset, { batchSize: 20, shuffle: true, seed: 1 });
  const result = await trainer.fit(all, { epochs: 10, validation: all, signal: stop.signal });
  trainer.dispose();
  model.dispose();
  return result;
}

const whole = await train('whole');
for (const stopAfter of [7, 25]) {
  const { reason, steps } = await train('parts', stopAfter);
  console.log(`${reason} after step ${steps}`);
}
const parts = await train('parts');
console.log(`${parts.reason} after step ${parts.steps}`);
const bytes = (out: string) => readFileSync(path.join(folder, out, 'best', 'model.safetensors'));
console.log(`the same weights: ${bytes('parts').equals(bytes('whole'))}`);
console.log(`the same best validation: ${parts.best?.loss === whole.best?.loss}`);

// Another average: of the models that were kept.
const kept = await selectCheckpoints(path.join(folder, 'parts'), { last: 3 });
const { model: average } = await averageModels(kept.map((checkpoint) => checkpoint.folder));
await saveModel(path.join(folder, 'average'), average, { tokenizer, specialIds });
console.log(`averaged the models of steps ${kept.map(({ step }) => step).join(', ')}`);
average.dispose();
