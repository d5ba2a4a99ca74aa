/** Builds parts and whole models with the options of reference_options.py. */
import {
  attention,
  makeModel,
  MultiHeadedAttention,
  PositionwiseFeedForward,
  RMSNorm,
  SublayerConnection,
} from 'torchformer';
import type {
  Activation,
  EmptyRows,
  ModelOptions,
  NormOptions,
  Positions,
  Tie,
  VocabSize,
} from 'torchformer';
import type { Case, Given } from './fixtures.js';
import { argumentsOf, here, inMode, transformer, unary } from './subject.js';
import type { Arguments, Mode, Subject } from './subject.js';

/** Empty for the classes' own dropout. */
type DropoutOption = { dropout?: number };

export function buildWithOptions({ module: name, options }: Case, mode: Mode): Subject {
  const builder = builders[name];
  if (builder === undefined) throw new Error(`the fixtures have a module ${name} unknown here`);
  const dropout = mode === 'evaluation' ? {} : { dropout: 0 };
  return inMode(builder(argumentsOf(name, options), dropout, options), mode);
}

/** The reference's names of norms. */
const norms: Record<string, NormOptions> = {
  layer: {},
  sample: { std: 'sample', epsPlace: 'outside', names: 'k/b' },
  torch: { eps: 1e-5, names: 'weight/bias' },
  rms: { kind: 'rms' },
};

const builders: Record<string, (given: Arguments, off: DropoutOption, options: Given) => Subject> =
  {
    RMSNorm: (given) => unary(new RMSNorm(given.number('features'), given.renamed({ eps: 'eps' }))),

    SublayerConnection: ({ number, text }, off) => {
      const order = text('order') as 'pre' | 'post';
      const norm = normOf(text('norm'));
      const module = new SublayerConnection(number('size'), { ...off, order, norm });
      return { module, run: (x) => ({ output: module.forward(here(x), (y) => y.tanh()) }) };
    },

    PositionwiseFeedForward: ({ number, text }, off, { bias }) => {
      const options = { ...off, activation: text('activation') as Activation, bias: bias === true };
      return unary(new PositionwiseFeedForward(number('d_model'), number('d_ff'), options));
    },

    attention: ({ text }) => ({
      module: null,
      run(query, key, value, mask = null) {
        const options = { mask, emptyRows: text('empty_rows') as EmptyRows };
        const [output, weights] = attention(here(query), here(key), here(value), options);
        return { output, weights: here(weights) };
      },
    }),

    MultiHeadedAttention: ({ number, text, has }, off, { bias, rotary }) => {
      const module = new MultiHeadedAttention(number('h'), number('d_model'), {
        ...off,
        ...(bias === false ? { bias } : {}),
        ...(rotary === true ? { rotary: {} } : {}),
        ...(has('empty_rows') ? { emptyRows: text('empty_rows') as EmptyRows } : {}),
      });
      return {
        module,
        run: (query, key, value, mask) => ({
          output: module.forward(here(query), here(key), here(value), mask),
        }),
      };
    },

    makeModel: (given, off, options) =>
      transformer(
        makeModel(vocabSizeOf(options), { ...modelOptions(given, options), ...all(off) }),
      ),
  };

/** Attention's own dropout goes off with the others. */
function all(off: DropoutOption): ModelOptions {
  return off.dropout === undefined ? {} : { dropout: off.dropout, attentionDropout: off.dropout };
}

function vocabSizeOf({ vocab_size: size }: Given): VocabSize {
  if (typeof size === 'number') return size;
  const [src, tgt] = size as [number, number];
  return { src, tgt };
}

/** What the fixture leaves out keeps makeModel's default. */
function modelOptions({ text, has, renamed }: Arguments, options: Given): ModelOptions {
  const { bias, final_norm: finalNorm } = options;
  return {
    ...renamed({ N: 'N', d_model: 'dModel', d_ff: 'dFf', h: 'h', max_len: 'maxLen' }),
    ...(has('norm') ? { norm: normOf(text('norm')) } : {}),
    ...(has('order') ? { order: text('order') as 'pre' | 'post', finalNorm: true } : {}),
    ...(typeof finalNorm === 'boolean' ? { finalNorm } : {}),
    ...(has('positions') ? { positions: text('positions') as Positions } : {}),
    ...(has('activation') ? { activation: text('activation') as Activation } : {}),
    ...(has('tie') ? { tie: text('tie') as Tie } : {}),
    ...(has('empty_rows') ? { emptyRows: text('empty_rows') as EmptyRows } : {}),
    ...(Array.isArray(bias)
      ? {
          bias: {
            attention: bias.includes('attention'),
            feedForward: bias.includes('feedForward'),
            generator: bias.includes('generator'),
          },
        }
      : {}),
  };
}

function normOf(name: string): NormOptions {
  const norm = norms[name];
  if (norm === undefined) throw new Error(`the fixtures have a norm ${name} unknown here`);
  return norm;
}
