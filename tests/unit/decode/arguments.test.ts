import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  greedy,
  ones,
  paddingMask,
  RecomputingStepDecoder,
  tensor,
  Translator,
  type Tensor,
  type Transformer,
} from 'torchformer';
import { tinyModel, tinyTask, type TinyTask } from '../../support/tinyTranslation.js';

let task: TinyTask;
let model: Transformer;
let translator: Translator;
let src: Tensor;
let srcMask: Tensor;
beforeAll(async () => {
  task = await tinyTask();
  model = tinyModel(task.tokenizer.vocabSize).eval();
  const { tokenizer, specialIds } = task;
  translator = new Translator(model, { tokenizer, specialIds });
  src = tensor([[1n, 5n, 2n]]);
  srcMask = paddingMask(src, 0);
});
afterAll(() => {
  for (const resource of [model, src, srcMask]) resource.dispose();
});

describe('new Translator', () => {
  test.each<[string, unknown, object | undefined, string]>([
    ['null for the model', null, {}, 'model must be a Transformer, as returned by makeModel(…)'],
    ['{} for the model', {}, {}, 'model must be a Transformer'],
    ['no options', 'ok', undefined, 'options with tokenizer and specialIds are required'],
    ['tokenizer 5', 'ok', { tokenizer: 5 }, 'tokenizer must be a Tokenizer, got 5'],
    ['no specialIds', 'ok', { specialIds: undefined }, 'specialIds must be { pad, bos, eos }'],
    ['specialIds without eos', 'ok', { specialIds: { pad: 0, bos: 1 } }, 'eos must be an integer'],
  ])('refuses %s', (_, given, options, message) => {
    const { tokenizer, specialIds } = task;
    const all = options && { tokenizer, specialIds, ...options };
    const make = () => new Translator((given === 'ok' ? model : given) as never, all as never);
    expect(make).toThrow(TypeError);
    expect(make).toThrow(`Translator: ${message}`);
  });
});

describe('Translator.load', () => {
  test.each<[string, unknown, unknown, string]>([
    ['no folder', undefined, undefined, 'folder must be a path, got undefined'],
    ['an empty folder', '', undefined, 'folder must be a path, got the string ""'],
    ['device 5', 'runs/a', { device: 5 }, 'device must be'],
    ['a device as options', 'runs/a', 'cpu', 'options must be an object'],
  ])('refuses %s', async (_, folder, options, message) => {
    const loading = Translator.load(folder as never, options as never);
    await expect(loading).rejects.toThrow(TypeError);
    await expect(loading).rejects.toThrow(`Translator.load: ${message}`);
  });
});

describe('Translator.translate', () => {
  test.each<[string, unknown, string]>([
    ['nothing', undefined, 'texts must be an array of strings, got undefined'],
    ['a number', 7, 'texts must be an array of strings, got 7'],
    ['a list with null', [null, 'a'], 'texts[0] must be a string, got null'],

    ['a list with a hole', ['a', , 'b'], 'texts[1] must be a string, got undefined'],
    ['a list of holes', new Array(2), 'texts[0] must be a string, got undefined'],
  ])('refuses %s', async (_, texts, message) => {
    const translating = translator.translate(texts as never);
    await expect(translating).rejects.toThrow(TypeError);
    await expect(translating).rejects.toThrow(`Translator.translate: ${message}`);
  });

  test.each<[string, unknown, string]>([
    ['signal 5', { signal: 5 }, 'signal must be an AbortSignal, got 5'],
    ['a signal as options', new AbortController().signal, 'got an AbortSignal'],
    ['batchSize null', { batchSize: null }, 'batchSize must be an integer, got null'],
    ['maxLength null', { maxLength: null }, 'maxLength must be an integer, got null'],
  ])('refuses %s', async (_, options, message) => {
    const translating = translator.translate(['one'], options as never);
    await expect(translating).rejects.toThrow(TypeError);
    await expect(translating).rejects.toThrow(message);
  });
});

describe('greedy and its decoder', () => {
  const valid = { pad: 0, bos: 1, eos: 2 };
  test.each<[string, () => unknown, string]>([
    ['a model', () => greedy(null as never, src, srcMask, valid), 'greedy: model must be'],
    ['ids', () => greedy(model, null as never, srcMask, valid), 'greedy: src must be a Tensor'],
    ['a mask', () => greedy(model, src, null as never, valid), 'greedy: srcMask must be a Tensor'],
    ['options', () => greedy(model, src, srcMask, undefined as never), 'options with pad, bos and'],
    [
      'a signal',
      () => greedy(model, src, srcMask, { ...valid, signal: 5 as never }),
      'greedy: signal must be an AbortSignal, got 5',
    ],
    ['a model', () => new RecomputingStepDecoder({} as never, src, srcMask, 1), 'model must be'],
    ['a mask', () => new RecomputingStepDecoder(model, src, 5 as never, 1), 'srcMask must be'],
    ['bos', () => new RecomputingStepDecoder(model, src, srcMask, '1' as never), 'bos must be'],
    ['tokens', () => withDecoder((decoder) => decoder.append([1] as never)), 'tokens must be'],
    ['rows', () => withDecoder((decoder) => decoder.select(null as never)), 'rows must be'],
    [
      'int64 rows',
      () => withDecoder((decoder) => decoder.select(ones([1]))),
      'rows must contain ids',
    ],
  ])('%s that is none is refused', async (_, call, message) => {
    const calling = (async () => call())();
    await expect(calling).rejects.toThrow(TypeError);
    await expect(calling).rejects.toThrow(message);
  });

  function withDecoder(use: (decoder: RecomputingStepDecoder) => void): void {
    const decoder = new RecomputingStepDecoder(model, src, srcMask, 1);
    try {
      use(decoder);
    } finally {
      decoder.dispose();
    }
  }
});
