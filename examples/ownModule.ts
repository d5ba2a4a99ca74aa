/**
 * A module of one's own in a model, trained like any other: here a feed-forward network whose hidden layer is
 * multiplied by a gate, in every layer. The task is a toy: "forty two" → "42".
 *
 * ```sh
 * node build/examples/ownModule.js [folder]
 * ```
 */
import path from 'node:path';
import {
  batches,
  findSpecialIds,
  Linear,
  loadModel,
  makeModel,
  manualSeed,
  Module,
  Tokenizer,
  trainCharacters,
  Trainer,
  TranslationDataset,
  Translator,
  type Tensor,
  type Transformer,
} from 'torchformer';

/** W₂ (relu(W₁ x) · sigmoid(G x)), on vectors `[…, dModel]`. */
class GatedFeedForward extends Module {
  readonly hidden: Linear;
  readonly gate: Linear;
  readonly output: Linear;

  constructor(dModel: number, dFf: number) {
    super();
    // Assigned modules and parameters are registered under their names, as in PyTorch.
    this.hidden = new Linear(dModel, dFf);
    this.gate = new Linear(dModel, dFf);
    this.output = new Linear(dFf, dModel);
  }

  override forward(x: Tensor): Tensor {
    const hidden = this.hidden.forward(x).relu();
    return this.output.forward(hidden.mul(this.gate.forward(x).sigmoid()));
  }
}

function gatedModel(vocabSize: number): Transformer {
  manualSeed(1);
  const model = makeModel(vocabSize, { N: 1, dModel: 64, dFf: 128, h: 4, dropout: 0 });
  for (const layer of [...model.encoder.layers, ...model.decoder.layers]) {
    layer.feedForward = new GatedFeedForward(64, 128);
  }
  return model;
}

const out = process.argv[2] ?? path.join('runs', 'own-module');
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

const model = gatedModel(tokenizer.vocabSize);
console.log([...model.stateDict().keys()].filter((name) => name.includes('gate')).join(', '));
const trainer = new Trainer(model, {
  specialIds,
  tokenizer,
  learningRate: 3e-3,
  out,
  overwrite: true,
  reporter: null,
});
const all = batches(dataset, { batchSize: 20, shuffle: true, seed: 1 });
await trainer.fit(all, { epochs: 30, validation: all });
trainer.dispose();

// The saved weights need a model with the same modules, which `loadModel` cannot make.
const { model: loaded } = await loadModel(out, { model: gatedModel(tokenizer.vocabSize) });
const translator = new Translator(loaded, { tokenizer, specialIds });
const outputs = await translator.translate(pairs.map(({ src }) => src));
const right = outputs.filter((output, index) => output === pairs[index]?.tgt).length;
console.log(`${right} of ${pairs.length} are right`);
