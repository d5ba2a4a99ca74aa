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
 * A whole Transformer on the CPU in float32, in training mode. Source and target have embeddings
 * of their own unless they are tied.
 *
 * Weights with more than one dimension, embeddings included, are drawn xavier-uniform, tied ones
 * once; biases keep Linear's default and start equal in all layers, since the layers are clones of
 * one. `manualSeed` before makes it reproducible, with the weights that seed 001 gets in PyTorch.
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
 * @param vocabSize number of token ids, the tokenizer's added tokens included: one number, or
 *   `{ src, tgt }` for vocabularies of different sizes
 * @throws RangeError, TypeError for a setting out of range, or settings that do not go together
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
  // Only patterns for clones: no reason to wait for the garbage collector.
  for (const pattern of [selfAttn, srcAttn, feedForward, position, encoderLayer, decoderLayer]) {
    pattern.dispose();
  }
  for (const parameter of model.parameters()) drawWeights(parameter);
  model.config = config;
  model.blueprint = new ModelBlueprint(model);
  return model;
}

/** The parameters that `tie` makes one, by their names in the state dict. */
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

/** What comes behind the embedding: positions to add, or their dropout alone. */
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

/** Xavier-uniform, unless it is a bias or of a norm. */
function drawWeights(parameter: Parameter): void {
  if (parameter.ndim < 2) return;
  // The first dimension of learned positions [1, maxLen, dModel] is for broadcasting only.
  tidy(() => {
    xavierUniform_(parameter.ndim === 2 ? parameter : parameter.detach().squeeze(0));
  });
}

/** Both modules hold one Parameter from here on. */
function shareWeight(from: { weight: Parameter }, to: { weight: Parameter }): void {
  to.weight.dispose();
  to.weight = from.weight;
}
