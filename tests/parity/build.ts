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
import type { Transformer } from 'torchformer';
import type { Case } from './fixtures.js';
import { argumentsOf, here, inMode, transformer, unary } from './subject.js';
import type { Arguments, Mode, Subject } from './subject.js';

/** The fixture's module of seed 001, its parameters still the initial ones. */
export function build({ module: name, options }: Case, mode: Mode): Subject {
  const builder = builders[name];
  if (builder === undefined) throw new Error(`the fixtures have a module ${name} unknown here`);
  const dropout = mode === 'evaluation' ? {} : { dropout: 0 };
  return inMode(builder(argumentsOf(name, options), dropout), mode);
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

/** Empty for the classes' own dropout. */
type DropoutOption = { dropout?: number };

const builders: Record<string, (given: Arguments, off: DropoutOption) => Subject> = {
  LayerNorm: ({ number }) => unary(new LayerNorm(number('features'), { eps: number('eps') })),

  SampleLayerNorm: ({ number }) =>
    unary(
      new LayerNorm(number('d_model'), {
        eps: number('eps'),
        std: 'sample',
        epsPlace: 'outside',
        names: 'k/b',
      }),
    ),

  TorchLayerNorm: ({ number }) =>
    unary(
      new LayerNorm(number('normalized_shape'), {
        eps: number('eps'),
        names: 'weight/bias',
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

  MultiHeadedAttention: ({ number }, off) => {
    const module = new MultiHeadedAttention(number('h'), number('d_model'), off);
    return {
      module,
      run: (query, key, value, mask) => ({
        output: module.forward(here(query), here(key), here(value), mask),
      }),
    };
  },

  PositionwiseFeedForward: (given, off) => unary(feedForward(given, off)),

  SublayerConnection: ({ number }, off) => {
    const module = new SublayerConnection(number('size'), off);
    return { module, run: (x) => ({ output: module.forward(here(x), (y) => y.tanh()) }) };
  },

  EncoderLayer: (given, off) => masked(encoderLayer(given, off)),
  Encoder: (given, off) => masked(new Encoder(encoderLayer(given, off), given.number('N'))),
  DecoderLayer: (given, off) => decoding(decoderLayer(given, off)),
  Decoder: (given, off) => decoding(new Decoder(decoderLayer(given, off), given.number('N'))),

  TransformerEmbedding: ({ number }) =>
    unary(new TransformerEmbedding(number('d_model'), number('vocab_size'))),

  PositionalEncoding: ({ number }, off) =>
    unary(new PositionalEncoding(number('d_model'), { ...off, maxLen: number('max_len') })),

  Generator: ({ number }) => unary(new Generator(number('d_model'), number('vocab_size'))),

  Transformer: ({ number }, off) =>
    transformer(buildModel((name) => (name in off ? 0 : number(name)), off.dropout)),
};

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

function selfAttention({ number }: Arguments, off: DropoutOption): MultiHeadedAttention {
  return new MultiHeadedAttention(number('h'), number('d_model'), off);
}

function feedForward({ number }: Arguments, off: DropoutOption): PositionwiseFeedForward {
  return new PositionwiseFeedForward(number('d_model'), number('d_ff'), off);
}

function encoderLayer(given: Arguments, off: DropoutOption): EncoderLayer {
  return new EncoderLayer(
    given.number('d_model'),
    selfAttention(given, off),
    feedForward(given, off),
    off,
  );
}

function decoderLayer(given: Arguments, off: DropoutOption): DecoderLayer {
  const [own, source] = [selfAttention(given, off), selfAttention(given, off)];
  return new DecoderLayer(given.number('d_model'), own, source, feedForward(given, off), off);
}
