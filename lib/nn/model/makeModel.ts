import { tidy } from '../../tensor/scope.js';
import { Sequential } from '../module/containers.js';
import { ModelBlueprint } from './blueprint.js';
import { Decoder, DecoderLayer } from './decoder.js';
import { Dropout } from '../layers/dropout.js';
import { Encoder, EncoderLayer } from './encoder.js';
import { Generator } from './generator.js';
import { xavierUniform_ } from '../module/init.js';
import { LearnedPositions } from '../layers/learnedPositions.js';
import { checkedConfig, vocabSizes } from './modelOptions.js';
import type { ModelConfig, ModelOptions, VocabSize } from './modelOptions.js';
import type { TensorModule } from '../module/module.js';
import { MultiHeadedAttention } from '../attention/multiHeadedAttention.js';
import type { Parameter } from '../module/parameter.js';
import type { Ties } from '../module/ties.js';
import { PositionalEncoding } from '../layers/positionalEncoding.js';
import { PositionwiseFeedForward } from '../layers/positionwiseFeedForward.js';
import { Transformer } from './transformer.js';
import { TransformerEmbedding } from './transformerEmbedding.js';

/**
 * Creates a Transformer on the CPU in float32, in training mode. Source and target have separate
 * embeddings unless they are tied.
 *
 * Weights with more than one dimension, including embeddings, are initialized with Xavier uniform
 * values, tied ones once; biases keep the default of Linear and are initially equal in all layers,
 * since the layers are clones. To get reproducible weights, which are those of seed 001 in PyTorch,
 * call `manualSeed` first.
 *
 * ```ts
 * makeModel(8000); // seed 001
 * makeModel(8000, { order: 'post', tie: 'all' }); // as in the paper
 * makeModel({ src: 8000, tgt: 6000 }, {
 *   norm: { kind: 'rms' },
 *   positions: 'rotary',
 *   activation: 'swiglu',
 *   bias: false,
 * });
 * ```
 *
 * @param vocabSize number of token ids, including the tokenizer's added tokens: one number, or
 *   `{ src, tgt }` for vocabularies of different sizes
 * @throws RangeError, TypeError for an invalid setting, or settings that are incompatible
 */
export function makeModel(vocabSize: VocabSize, options: ModelOptions = {}): Transformer {
  const config = checkedConfig('makeModel', vocabSize, options);
  const { N, dModel, dFf, h, dropout, activation, norm, order, finalNorm, bias } = config;
  const sizes = vocabSizes(config);
  const selfAttn = new MultiHeadedAttention(h, dModel, {
    dropout: config.attentionDropout,
    emptyRows: config.emptyRows,
    bias: bias.attention,
    ...(config.positions === 'rotary' ? { rotary: { maxLen: config.maxLen } } : {}),
  });
  const srcAttn = selfAttn.clone();
  srcAttn.rotary?.dispose();
  srcAttn.rotary = null;
  const feedForward = new PositionwiseFeedForward(dModel, dFf, {
    dropout,
    activation,
    bias: bias.feedForward,
  });
  const position = addedPositions(config);
  const layer = { dropout, order, norm };
  const encoderLayer = new EncoderLayer(dModel, selfAttn.clone(), feedForward.clone(), layer);
  const decoderLayer = new DecoderLayer(
    dModel,
    selfAttn.clone(),
    srcAttn.clone(),
    feedForward.clone(),
    layer,
  );
  const encoder = new Encoder(encoderLayer, N, { finalNorm });
  const decoder = new Decoder(decoderLayer, N, { finalNorm });
  const src = new TransformerEmbedding(dModel, sizes.src);
  const tgt = new TransformerEmbedding(dModel, sizes.tgt);
  const generator = new Generator(dModel, sizes.tgt, { bias: bias.generator });
  if (config.tie === 'src-tgt' || config.tie === 'all') shareWeight(src.embedding, tgt.embedding);
  if (config.tie === 'tgt-generator' || config.tie === 'all') {
    shareWeight(tgt.embedding, generator.proj);
  }
  const model = new Transformer(
    encoder,
    decoder,
    new Sequential(src, position.clone()),
    new Sequential(tgt, position.clone()),
    generator,
  );
  // These were only templates for clones; free their memory now.
  for (const pattern of [selfAttn, srcAttn, feedForward, position, encoderLayer, decoderLayer]) {
    pattern.dispose();
  }
  for (const parameter of model.parameters()) drawWeights(parameter);
  model.config = config;
  model.blueprint = new ModelBlueprint(model);
  return model;
}

/** The names in the state dict of the parameters that `tie` shares. */
export function tiesOfConfig({ tie }: Pick<ModelConfig, 'tie'>): Ties {
  const src = 'src_embed.0.embedding.weight';
  const tgt = 'tgt_embed.0.embedding.weight';
  const generator = 'generator.proj.weight';
  switch (tie) {
    case 'none':
      return [];
    case 'src-tgt':
      return [[src, tgt]];
    case 'tgt-generator':
      return [[tgt, generator]];
    case 'all':
      return [[src, tgt, generator]];
  }
}

/** The module after the embedding: positions to add, or only their dropout. */
function addedPositions({ dModel, dropout, maxLen, positions }: ModelConfig): TensorModule {
  switch (positions) {
    case 'paired':
    case 'perColumn':
      return new PositionalEncoding(dModel, { dropout, maxLen, formula: positions });
    case 'learned':
      return new LearnedPositions(dModel, { dropout, maxLen });
    case 'rotary':
    case 'none':
      return new Dropout(dropout);
  }
}

/** Initializes with Xavier uniform values, except biases and parameters of norms. */
function drawWeights(parameter: Parameter): void {
  if (parameter.ndim < 2) return;
  // The first dimension of learned positions [1, maxLen, dModel] is for broadcasting only.
  tidy(() => {
    xavierUniform_(parameter.ndim === 2 ? parameter : parameter.detach().squeeze(0));
  });
}

/** Makes both modules share one Parameter. */
function shareWeight(from: { weight: Parameter }, to: { weight: Parameter }): void {
  to.weight.dispose();
  to.weight = from.weight;
}
