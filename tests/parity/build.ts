/** Builds what a fixture names, from the constructor arguments of the post's class. */
import {
  attention,
  Decoder,
  DecoderLayer,
  Encoder,
  EncoderLayer,
  Generator,
  LayerNorm,
  makeModel,
  MultiHeadedAttention,
  PositionalEncoding,
  PositionwiseFeedForward,
  SublayerConnection,
  TransformerEmbedding,
} from 'torchformer';
import type { Module, Tensor, Transformer } from 'torchformer';
import type { ModuleCase } from './fixtures.js';

/** A mask or another input that the fixture may leave out. */
type Given = Tensor | null;
type Outputs = Record<string, Tensor>;

export interface Subject {
  /** Null for a function. */
  module: Module | null;
  /** Runs it on the fixture's arguments; outputs under the fixture's names. */
  run: (...given: Given[]) => Outputs;
}

/** The fixture's module with every dropout 0, its parameters still the initial ones. */
export function build({ module: name, options }: Pick<ModuleCase, 'module' | 'options'>): Subject {
  const builder = builders[name];
  if (builder === undefined) throw new Error(`the fixtures have a module ${name} unknown here`);
  return builder((option) => {
    const value = options[option];
    if (value === undefined) throw new Error(`the fixture of ${name} has no option ${option}`);
    return value;
  });
}

/** makeModel by the post's argument names. */
export function buildModel(
  option: (name: string) => number,
  attentionDropout?: number,
): Transformer {
  return makeModel(option('vocab_size'), {
    N: option('N'),
    dModel: option('d_model'),
    dFf: option('d_ff'),
    h: option('h'),
    dropout: option('dropout'),
    ...(attentionDropout === undefined ? {} : { attentionDropout }),
  });
}

const noDropout = { dropout: 0 };

const builders: Record<string, (option: (name: string) => number) => Subject> = {
  LayerNorm: (option) => unary(new LayerNorm(option('features'), { eps: option('eps') })),

  SampleLayerNorm: (option) =>
    unary(
      new LayerNorm(option('d_model'), {
        eps: option('eps'),
        deviation: 'sample',
        epsPlacement: 'outside',
        names: { scale: 'k', shift: 'b' },
      }),
    ),

  TorchLayerNorm: (option) =>
    unary(
      new LayerNorm(option('normalized_shape'), {
        eps: option('eps'),
        names: { scale: 'weight', shift: 'bias' },
      }),
    ),

  attention: () => ({
    module: null,
    run(query, key, value, mask) {
      const options = { mask, needWeights: true };
      const [output, weights] = attention(here(query), here(key), here(value), options);
      return { output, weights: here(weights) };
    },
  }),

  MultiHeadedAttention: (option) => {
    const module = new MultiHeadedAttention(option('h'), option('d_model'), noDropout);
    return {
      module,
      run: (query, key, value, mask) => ({
        output: module.forward(here(query), here(key), here(value), mask),
      }),
    };
  },

  PositionwiseFeedForward: (option) => unary(feedForward(option)),

  SublayerConnection: (option) => {
    const module = new SublayerConnection(option('size'), noDropout);
    return { module, run: (x) => ({ output: module.forward(here(x), (y) => y.tanh()) }) };
  },

  EncoderLayer: (option) => masked(encoderLayer(option)),
  Encoder: (option) => masked(new Encoder(encoderLayer(option), option('N'))),
  DecoderLayer: (option) => decoding(decoderLayer(option)),
  Decoder: (option) => decoding(new Decoder(decoderLayer(option), option('N'))),

  TransformerEmbedding: (option) =>
    unary(new TransformerEmbedding(option('d_model'), option('vocab_size'))),

  PositionalEncoding: (option) =>
    unary(new PositionalEncoding(option('d_model'), { dropout: 0, maxLen: option('max_len') })),

  Generator: (option) => unary(new Generator(option('d_model'), option('vocab_size'))),

  Transformer: (option) => {
    const module = buildModel(option, 0);
    return {
      module,
      run(src, tgt, srcMask, tgtMask, tgtY) {
        const output = module.forward(here(src), here(tgt), srcMask, tgtMask);
        const logProbabilities = module.generator.forward(output);
        return {
          output,
          log_probabilities: logProbabilities,
          loss: meanLoss(logProbabilities, here(tgtY)),
        };
      },
    };
  },
};

/** Mean over the tokens that are not padding (id 0), composed of plain operations. */
function meanLoss(logProbabilities: Tensor, tgtY: Tensor): Tensor {
  const chosen = logProbabilities.gather(-1, tgtY.unsqueeze(-1)).squeeze(-1);
  const isToken = tgtY.ne(0);
  return chosen
    .mul(isToken.to({ dtype: chosen.dtype }))
    .sum()
    .neg()
    .div(isToken.sum());
}

function unary(module: Module & { forward(x: Tensor): Tensor }): Subject {
  return { module, run: (x) => ({ output: module.forward(here(x)) }) };
}

function masked(module: EncoderLayer | Encoder): Subject {
  return { module, run: (x, mask = null) => ({ output: module.forward(here(x), mask) }) };
}

function decoding(module: DecoderLayer | Decoder): Subject {
  return {
    module,
    run: (x, memory, srcMask = null, tgtMask = null) => ({
      output: module.forward(here(x), here(memory), srcMask, tgtMask),
    }),
  };
}

function selfAttention(option: (name: string) => number): MultiHeadedAttention {
  return new MultiHeadedAttention(option('h'), option('d_model'), noDropout);
}

function feedForward(option: (name: string) => number): PositionwiseFeedForward {
  return new PositionwiseFeedForward(option('d_model'), option('d_ff'), noDropout);
}

function encoderLayer(option: (name: string) => number): EncoderLayer {
  return new EncoderLayer(option('d_model'), selfAttention(option), feedForward(option), noDropout);
}

function decoderLayer(option: (name: string) => number): DecoderLayer {
  const [own, source] = [selfAttention(option), selfAttention(option)];
  return new DecoderLayer(option('d_model'), own, source, feedForward(option), noDropout);
}

function here(tensor: Given | undefined): Tensor {
  if (tensor === null || tensor === undefined)
    throw new Error('the fixture leaves out a required argument');
  return tensor;
}
