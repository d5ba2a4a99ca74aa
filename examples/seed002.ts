/**
 * Trains a model built from seed 002's classes, with their sizes, on a generated toy language, and counts
 * how many unseen sentences it translates without a single wrong character.
 *
 * ```sh
 * node build/examples/seed002.js
 * ```
 *
 * A source sentence is a random sequence of letters and digits. Its translation has them in reverse
 * order, each replaced by its mirror image: a by z, b by y, …, 0 by 9, 1 by 8, …
 */
import {
  Adam,
  cat,
  crossEntropy,
  full,
  Linear,
  manualSeed,
  Module,
  ModuleList,
  noGrad,
  seed002,
  subsequentMask,
  tensor,
  tidy,
} from 'torchformer';
import type { Tensor } from 'torchformer';

const settings = {
  /** Layers in the encoder and in the decoder. The post only shows the classes, not how many to use. */
  layers: 2,
  /** Characters in a sentence. With start and end, the longest fills the table of 50 positions. */
  shortest: 10,
  longest: 48,
  epochs: 12,
  stepsPerEpoch: 75,
  batchSize: 32,
  /** Adam's peak learning rate; it rises during warmup, then falls to 0 at the last step. */
  learningRate: 5e-3,
  warmupSteps: 100,
  unseenSentences: 500,
  seed: Number(process.argv[2] ?? 1),
};

// ---- the languages ----

/** The 39 words of both languages. */
const words = ['<pad>', '<start>', '<end>', ...'0123456789abcdefghijklmnopqrstuvwxyz'];
const [pad, start, end, firstDigit, firstLetter] = [0, 1, 2, 3, 13];

/** A sentence, as the ids of its characters. */
type Sentence = readonly number[];

function mirrored(id: number): number {
  return id < firstLetter
    ? firstDigit + 9 - (id - firstDigit)
    : firstLetter + 25 - (id - firstLetter);
}

function translation(sentence: Sentence): number[] {
  return sentence.map(mirrored).reverse();
}

/** An integer from 0 to below - 1. A seeded generator, so that a run can be repeated. */
let state = settings.seed;
function random(below: number): number {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
}

function randomSentence(): Sentence {
  const { shortest, longest } = settings;
  const length = shortest + random(longest - shortest + 1);
  return Array.from({ length }, () => firstDigit + random(words.length - firstDigit));
}

/**
 * Source ids `[B, 50]`. The padding comes first, so that a position gives the distance from the end of
 * the sentence, where its translation begins.
 */
function sourceIds(sentences: readonly Sentence[]): Tensor {
  const rows = sentences.map((sentence) => [...padding(sentence), start, ...sentence, end]);
  return tensor(rows, { dtype: 'int64' });
}

/** Target ids `[B, 50]`, with the padding last. */
function targetIds(sentences: readonly Sentence[]): Tensor {
  const rows = sentences.map((sentence) => [
    start,
    ...translation(sentence),
    end,
    ...padding(sentence),
  ]);
  return tensor(rows, { dtype: 'int64' });
}

function padding(sentence: Sentence): number[] {
  return Array<number>(settings.longest - sentence.length).fill(pad);
}

// ---- the model ----

class EncoderLayer extends Module {
  selfAttention = new seed002.MultiHead();
  output = new seed002.FullyConnectedOutput();

  override forward(input: Tensor, blocked: Tensor): Tensor {
    return this.output.forward(this.selfAttention.forward(input, input, input, blocked));
  }
}

class DecoderLayer extends Module {
  selfAttention = new seed002.MultiHead();
  crossAttention = new seed002.MultiHead();
  output = new seed002.FullyConnectedOutput();

  override forward(input: Tensor, memory: Tensor, future: Tensor, blocked: Tensor): Tensor {
    const seen = this.selfAttention.forward(input, input, input, future);
    return this.output.forward(this.crossAttention.forward(seen, memory, memory, blocked));
  }
}

class ToyTranslator extends Module {
  embedSource = new seed002.PositionEmbedding();
  embedTarget = new seed002.PositionEmbedding();
  encoder = new ModuleList(Array.from({ length: settings.layers }, () => new EncoderLayer()));
  decoder = new ModuleList(Array.from({ length: settings.layers }, () => new DecoderLayer()));
  toWords = new Linear(32, words.length);

  /** From source ids `[B, 50]` to vectors `[B, 50, 32]`. */
  encode(source: Tensor): Tensor {
    const blocked = paddingIn(source);
    let vectors = this.embedSource.forward(source);
    for (const layer of this.encoder) vectors = layer.forward(vectors, blocked);
    return vectors;
  }

  /** Logits of the word after each target position, `[B, T, 39]`. */
  decode(target: Tensor, memory: Tensor, source: Tensor): Tensor {
    // Seed 002's masks are true where a key is blocked. Padding comes after all real tokens, so it is
    // enough to block future positions.
    const future = subsequentMask(target.shape[1] as number).logicalNot();
    const blocked = paddingIn(source);
    let vectors = this.embedTarget.forward(target);
    for (const layer of this.decoder) vectors = layer.forward(vectors, memory, future, blocked);
    return this.toWords.forward(vectors);
  }

  override forward(source: Tensor, target: Tensor): Tensor {
    return this.decode(target, this.encode(source), source);
  }

  /** Greedy decoding, word by word: ids `[B, 50]`, the first of which is start. */
  translate(source: Tensor): Tensor {
    return tidy(() =>
      noGrad(() => {
        const memory = this.encode(source);
        let target = full([source.shape[0] as number, 1], start, { dtype: 'int64' });
        while ((target.shape[1] as number) < settings.longest + 2) {
          const scores = this.decode(target, memory, source).select(1, -1);
          target = cat([target, scores.argmax(-1).unsqueeze(1)], 1);
        }
        return target;
      }),
    );
  }
}

/** True where a key is padding: `[B, 1, 1, S]`, to fit `[B, heads, queries, keys]`. */
function paddingIn(ids: Tensor): Tensor {
  return ids.eq(pad).unsqueeze(1).unsqueeze(1);
}

// ---- training ----

/** One training step. @returns the mean loss per word */
function trainStep(step: number, sentences: readonly Sentence[]): number {
  const { learningRate, warmupSteps, epochs, stepsPerEpoch } = settings;
  const remaining = 1 - step / (epochs * stepsPerEpoch);
  optimizer.lr = learningRate * Math.min(step / warmupSteps, remaining);
  return tidy(() => {
    const target = targetIds(sentences);
    const length = (target.shape[1] as number) - 1;
    const scores = model.forward(sourceIds(sentences), target.narrow(1, 0, length));
    const expected = target.narrow(1, 1, length);
    const loss = crossEntropy(scores, expected, { ignoreIndex: pad, reduction: 'mean' });
    optimizer.zeroGrad();
    loss.backward();
    optimizer.step();
    return loss.item();
  });
}

function translated(sentences: readonly Sentence[]): number[][] {
  const rows = tidy(() => model.translate(sourceIds(sentences)).toArray()) as number[][];
  // Everything after the end token is not part of the translation.
  return rows.map((row) => row.slice(1, row.includes(end) ? row.indexOf(end) : row.length));
}

function spelled(sentence: Sentence): string {
  return sentence.map((id) => words[id]).join('');
}

manualSeed(settings.seed);
const model = new ToyTranslator();
const optimizer = new Adam(model.parameters(), { lr: settings.learningRate });
console.log(`${model.parameterCount()} parameters`);

const unseen = Array.from({ length: settings.unseenSentences }, randomSentence);
const reserved = new Set(unseen.map(spelled));
function trainingSentence(): Sentence {
  const sentence = randomSentence();
  return reserved.has(spelled(sentence)) ? trainingSentence() : sentence;
}

const began = Date.now();
let step = 0;
for (let epoch = 1; epoch <= settings.epochs; epoch++) {
  let sum = 0;
  for (let count = 0; count < settings.stepsPerEpoch; count++) {
    sum += trainStep(++step, Array.from({ length: settings.batchSize }, trainingSentence));
  }
  const loss = (sum / settings.stepsPerEpoch).toFixed(4);
  const seconds = Math.round((Date.now() - began) / 1000);
  console.log(`epoch ${String(epoch).padStart(2)}/${settings.epochs}  loss ${loss}  ${seconds} s`);
}

model.eval();
const results = translated(unseen);
for (const [index, result] of results.slice(0, 3).entries()) {
  console.log(`${spelled(unseen[index] as Sentence)} -> ${spelled(result)}`);
}
const right = results.filter(
  (result, index) => spelled(result) === spelled(translation(unseen[index] as Sentence)),
);
const percent = ((100 * right.length) / unseen.length).toFixed(1);
console.log(`exact match: ${percent} % of ${unseen.length} unseen sentences`);
model.dispose();
