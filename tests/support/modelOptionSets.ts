/** Settings of `makeModel` beside the defaults, each once, and mixtures that published models have. */
import { makeModel, manualSeed, paddingMask, targetMask, tensor } from 'torchformer';
import type { ModelOptions, Tensor, Transformer, VocabSize } from 'torchformer';

export interface OptionSet {
  readonly vocabSize?: VocabSize;
  readonly options: ModelOptions;
}

export const optionSets: Readonly<Record<string, OptionSet>> = {
  'the defaults': { options: {} },
  'norm: sample deviation, eps added to it': {
    options: { norm: { std: 'sample', epsPlace: 'outside', names: 'k/b' } },
  },
  "norm: PyTorch's": { options: { norm: { eps: 1e-5, names: 'weight/bias' } } },
  'norm: rms': { options: { norm: { kind: 'rms', eps: 1e-5 } } },
  'order: post': { options: { order: 'post' } },
  'order: post, with a final norm': { options: { order: 'post', finalNorm: true } },
  'order: pre, without a final norm': { options: { finalNorm: false } },
  'positions: perColumn': { options: { positions: 'perColumn' } },
  'positions: learned': { options: { positions: 'learned' } },
  'positions: rotary': { options: { positions: 'rotary' } },
  'positions: none': { options: { positions: 'none' } },
  'activation: gelu': { options: { activation: 'gelu' } },
  'activation: swiglu': { options: { activation: 'swiglu' } },
  'tie: src-tgt': { options: { tie: 'src-tgt' } },
  'tie: tgt-generator': { options: { tie: 'tgt-generator' } },
  'tie: all': { options: { tie: 'all' } },
  'bias: false': { options: { bias: false } },
  'bias: in feed-forward only': { options: { bias: { attention: false, generator: false } } },
  'emptyRows: zero': { options: { emptyRows: 'zero' } },
  'two vocabularies': { vocabSize: { src: 9, tgt: 12 }, options: {} },
  'two vocabularies, target and generator tied': {
    vocabSize: { src: 9, tgt: 12 },
    options: { tie: 'tgt-generator' },
  },
  'a modern mixture': {
    options: {
      norm: { kind: 'rms' },
      positions: 'rotary',
      activation: 'swiglu',
      bias: false,
      tie: 'tgt-generator',
    },
  },
  "the paper's": { options: { order: 'post', tie: 'all' } },
};

/** The names, for `it.each`. */
export const optionSetNames = Object.keys(optionSets);

/** Two small layers without dropout; the same weights each time. */
export function smallModel(name: string, more: ModelOptions = {}): Transformer {
  const { vocabSize = 12, options } = optionSets[name] as OptionSet;
  manualSeed(5);
  return makeModel(vocabSize, {
    ...{ N: 2, dModel: 8, dFf: 12, h: 2, maxLen: 10, dropout: 0, attentionDropout: 0 },
    ...options,
    ...more,
  });
}

/** Ids below 9, which every set has; 0 is padding. */
export function ids(rows: number[][]): Tensor {
  return tensor(rows, { dtype: 'int64' });
}

/** Log-probabilities `[B, T, vocabulary]`. */
export function logProbabilities(model: Transformer, src: Tensor, tgt: Tensor): Tensor {
  const hidden = model.forward(src, tgt, paddingMask(src, 0), targetMask(tgt, 0));
  return model.generator.forward(hidden);
}
