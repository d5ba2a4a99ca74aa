import { checkInteger, checkOptions, checkProbability } from '../runtime/options.js';
import { Sequential } from './containers.js';
import { Decoder, DecoderLayer } from './decoder.js';
import { Encoder, EncoderLayer } from './encoder.js';
import { Generator } from './generator.js';
import { xavierUniform_ } from './init.js';
import { MultiHeadedAttention } from './multiHeadedAttention.js';
import { PositionalEncoding } from './positionalEncoding.js';
import { PositionwiseFeedForward } from './positionwiseFeedForward.js';
import { Transformer } from './transformer.js';
import { TransformerEmbedding } from './transformerEmbedding.js';

/** Settings of {@link makeModel}; the defaults are seed 001's, most of them the paper's base model. */
export interface ModelOptions {
  /** layers in encoder and decoder each; default 6 */
  N?: number;
  /** size of the vectors; default 512 */
  dModel?: number;
  /** inner size of the feed-forward layers; default 2048 */
  dFf?: number;
  /** heads; must divide dModel; default 8 */
  h?: number;
  /** of positions, sublayers and feed-forward; default 0.1 */
  dropout?: number;
  /** of the attention weights; default 0.1, whatever `dropout` is, as in seed 001 */
  attentionDropout?: number;
  /** longest sequence; default 200 */
  maxLen?: number;
}

/** Everything that is needed to make the model again. */
export type ModelConfig = Readonly<Required<ModelOptions> & { vocabSize: number }>;

/**
 * A whole Transformer on the CPU in float32, in training mode. Source and target have
 * vocabularies of the same size, but embeddings of their own.
 *
 * Weights with more than one dimension, embeddings included, are drawn xavier-uniform; biases
 * keep Linear's default and start equal in all layers, since the layers are clones of one.
 * `manualSeed` before makes it reproducible, with the weights that seed 001 gets in PyTorch.
 *
 * @param vocabSize number of token ids, the tokenizer's added tokens included
 * @throws RangeError, TypeError for a setting out of range, or h that does not divide dModel
 */
export function makeModel(vocabSize: number, options: ModelOptions = {}): Transformer {
  const config = checkedConfig(vocabSize, options);
  const { N, dModel, dFf, h, dropout, attentionDropout, maxLen } = config;
  const attn = new MultiHeadedAttention(h, dModel, { dropout: attentionDropout });
  const feedForward = new PositionwiseFeedForward(dModel, dFf, { dropout });
  const position = new PositionalEncoding(dModel, { dropout, maxLen });
  const encoderLayer = new EncoderLayer(dModel, attn.clone(), feedForward.clone(), { dropout });
  const decoderLayer = new DecoderLayer(dModel, attn.clone(), attn.clone(), feedForward.clone(), {
    dropout,
  });
  const model = new Transformer(
    new Encoder(encoderLayer, N),
    new Decoder(decoderLayer, N),
    new Sequential(new TransformerEmbedding(dModel, vocabSize), position.clone()),
    new Sequential(new TransformerEmbedding(dModel, vocabSize), position.clone()),
    new Generator(dModel, vocabSize),
  );
  // Only patterns for clones: no reason to wait for the garbage collector.
  for (const pattern of [attn, feedForward, position, encoderLayer, decoderLayer])
    pattern.dispose();
  for (const parameter of model.parameters()) {
    if (parameter.ndim > 1) xavierUniform_(parameter);
  }
  model.config = config;
  return model;
}

function checkedConfig(vocabSize: number, options: ModelOptions): ModelConfig {
  const owner = 'makeModel';
  checkOptions(owner, options, Object.keys(defaults));
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const config: ModelConfig = { vocabSize, ...defaults, ...Object.fromEntries(given) };
  for (const name of ['vocabSize', 'N', 'dModel', 'dFf', 'h', 'maxLen'] as const) {
    checkInteger(owner, name, config[name], 1);
  }
  for (const name of ['dropout', 'attentionDropout'] as const) {
    checkProbability(owner, name, config[name]);
  }
  if (config.dModel % config.h !== 0) {
    throw new RangeError(
      `makeModel: h must divide dModel, got ${config.h} heads for dModel ${config.dModel}`,
    );
  }
  return config;
}

const defaults: Required<ModelOptions> = {
  N: 6,
  dModel: 512,
  dFf: 2048,
  h: 8,
  dropout: 0.1,
  attentionDropout: 0.1,
  maxLen: 200,
};
