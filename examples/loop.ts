/**
 * A training loop without `Trainer`, in the words of PyTorch: for everything that a trainer does not do. The
 * task is a toy, so that it takes seconds: "forty two" → "42".
 *
 * ```sh
 * node build/examples/loop.js
 * ```
 */
import {
  Adam,
  batches,
  clipGradNorm,
  evaluate,
  findSpecialIds,
  makeModel,
  manualSeed,
  noam,
  Tokenizer,
  tokenLossSum,
  trainCharacters,
  TranslationDataset,
  Translator,
} from 'torchformer';

const tens = ['twenty', 'thirty', 'forty', 'fifty', 'sixty', 'seventy', 'eighty', 'ninety'];
const ones = ['', ' one', ' two', ' three', ' four', ' five', ' six', ' seven', ' eight', ' nine'];
const pairs = tens.flatMap((ten, first) =>
  ones.map((one, second) => ({ src: ten + one, tgt: `${first + 2}${second}` })),
);

const tokenizer = Tokenizer.fromJson(
  await trainCharacters(pairs.flatMap(({ src, tgt }) => [src, tgt])),
);
const specialIds = findSpecialIds(tokenizer);
const { pad } = specialIds;
const dataset = await TranslationDataset.fromPairs(pairs, { tokenizer, specialIds });

manualSeed(1);
const model = makeModel(tokenizer.vocabSize, { N: 1, dModel: 64, dFf: 128, h: 4, dropout: 0 });
const optimizer = new Adam(model.parameters(), { betas: [0.9, 0.98], eps: 1e-9 });
const rate = noam({ dModel: 64, warmup: 40, factor: 0.5 });

let step = 0;
for (let epoch = 1; epoch <= 40; epoch++) {
  for (const batch of batches(dataset, { batchSize: 20, shuffle: true, seed: 1, epoch })) {
    optimizer.zeroGrad();
    // The mean over the target tokens; the division is a part of the loss.
    const loss = tokenLossSum(model, batch, pad, { scale: 1 / batch.ntokens, labelSmoothing: 0.1 });
    await loss.backwardAsync();
    const norm = clipGradNorm(model.parameters(), 1);
    optimizer.lr = rate(++step);
    // A loss or gradient that is not finite would destroy all weights.
    if (Number.isFinite(norm)) await optimizer.stepAsync();
    // Nothing is freed before the end of a tick unless it is disposed of.
    loss.dispose();
    batch.dispose();
  }
  if (epoch % 10 !== 0) continue;
  const { loss } = await evaluate(model, batches(dataset), { pad });
  console.log(`epoch ${epoch}  loss ${loss.toFixed(4)}  rate ${optimizer.lr.toExponential(1)}`);
}

await using translator = new Translator(model.eval(), { tokenizer, specialIds });
const outputs = await translator.translate(pairs.map(({ src }) => src));
const right = outputs.filter((output, index) => output === pairs[index]?.tgt).length;
console.log(`${right} of ${pairs.length} are right`);
