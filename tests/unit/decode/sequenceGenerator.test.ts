import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  greedy,
  makeModel,
  manualSeed,
  memory,
  noGrad,
  paddingMask,
  PositionwiseFeedForward,
  RecomputingStepDecoder,
  SequenceGenerator,
  setNumThreads,
  tensor,
  tidy,
  type GeneratedSequence,
  type GenerateOptions,
  type ModelOptions,
  type Transformer,
} from 'torchformer';

const specialIds = { pad: 0, bos: 1, eos: 2 };
const small: ModelOptions = { N: 2, dModel: 32, dFf: 48, h: 4, maxLen: 40 };

function evalModel(vocabulary: number, options: ModelOptions = small): Transformer {
  manualSeed(7);
  const model = makeModel(vocabulary, options);
  model.eval();
  return model;
}

/** Sources of 3 to 12 ids, the same in every run. */
function makeSources(count: number, vocabulary: number): number[][] {
  return Array.from({ length: count }, (_, i) => {
    const length = 1 + ((i * 7) % 10);
    const ids = Array.from({ length }, (_, j) => 3 + ((i * 31 + j * j * 17) % (vocabulary - 3)));
    return [1, ...ids, 2];
  });
}

async function best(
  generator: SequenceGenerator,
  sources: readonly number[][],
  options: GenerateOptions = {},
): Promise<GeneratedSequence[]> {
  const found = await generator.generate(sources, options);
  return found.map(([first]) => first as GeneratedSequence);
}

/** Log-probabilities of the next token after each beginning of a target, by the modules. */
function stepScores(model: Transformer, source: number[], ids: readonly number[]): number[][] {
  return tidy(() => {
    const src = tensor([source], { dtype: 'int64' });
    const decoder = new RecomputingStepDecoder(model, src, paddingMask(src, 0), 1);
    const rows = [...ids, 0].map((id) => {
      const scores = Array.from(decoder.next().data() as Float32Array);
      decoder.append(tensor([id], { dtype: 'int64' }));
      return scores;
    });
    decoder.dispose();
    return rows;
  });
}

/**
 * A model whose every next token has the given probabilities, whatever came before: its projection is
 * the bias alone.
 */
function modelOf(probabilities: readonly number[]): Transformer {
  const model = evalModel(probabilities.length, { ...small, N: 1 });
  noGrad(() => {
    model.generator.proj.weight.fill_(0);
    model.generator.proj.bias?.copy_(tensor(probabilities.map(Math.log)));
  });
  return model;
}

describe('native decoding computes what the modules compute', () => {
  test.each<[string, ModelOptions]>([
    ['the defaults', {}],
    ['post-norm without a final norm', { order: 'post' }],
    ['post-norm with a final norm', { order: 'post', finalNorm: true }],
    ['RMS norms', { norm: { kind: 'rms' } }],
    ['the norm of seed 000', { norm: { std: 'sample', epsPlace: 'outside' } }],
    ['GELU', { activation: 'gelu' }],
    ['SwiGLU', { activation: 'swiglu' }],
    ['rotary positions', { positions: 'rotary' }],
    ['learned positions', { positions: 'learned' }],
    ['an angle for each column', { positions: 'perColumn' }],
    ['no positions', { positions: 'none' }],
    ['tied weights', { tie: 'all' }],
    ['no biases', { bias: false }],
    ['biases of the feed-forward layers only', { bias: { attention: false, generator: false } }],
    ['heads of 5 features', { dModel: 15, h: 3 }],
    ['one head of 64 features', { dModel: 64, h: 1 }],
    [
      'everything modern',
      { norm: { kind: 'rms' }, positions: 'rotary', activation: 'swiglu', bias: false },
    ],
  ])('%s', async (_, options) => {
    const model = evalModel(30, { ...small, ...options });
    const generator = new SequenceGenerator(model, { specialIds });
    const sources = makeSources(5, 30);
    const found = await best(generator, sources, { maxLength: 15, scores: true });
    found.forEach(({ ids, ended, tokenScores }, index) => {
      const expected = stepScores(model, sources[index] as number[], ids);
      const tokens = ended ? [...ids, 2] : ids;
      expect(tokenScores).toHaveLength(tokens.length);
      tokens.forEach((token, position) => {
        const scores = expected[position] as number[];
        // Without pad and bos, the others share their probability.
        const allowed = scores.map((score, id) => (id < 2 ? -Infinity : score));
        const sum = Math.log(allowed.reduce((total, score) => total + Math.exp(score), 0));
        expect(token).toBe(allowed.indexOf(Math.max(...allowed)));
        expect(tokenScores[position]).toBeCloseTo((allowed[token] as number) - sum, 5);
      });
    });
    model.dispose();
  });

  test('separate vocabularies', async () => {
    manualSeed(3);
    const model = makeModel({ src: 60, tgt: 20 }, small);
    model.eval();
    const generator = new SequenceGenerator(model, { specialIds });
    const source = [1, 55, 44, 59, 2];
    const [found] = await best(generator, [source], { maxLength: 8 });
    const src = tensor([source], { dtype: 'int64' });
    const [expected] = await greedy(model, src, paddingMask(src, 0), {
      ...specialIds,
      maxLength: 8,
    });
    expect(found?.ids).toEqual(expected?.ids);
    model.dispose();
  });
});

describe('a source gives the same target', () => {
  const vocabulary = 90;
  const sources = makeSources(40, vocabulary);
  let model: Transformer;
  let generator: SequenceGenerator;
  beforeAll(() => {
    model = evalModel(vocabulary, { ...small, dModel: 48, h: 6 });
    generator = new SequenceGenerator(model, { specialIds });
  });
  afterAll(() => {
    model.dispose();
  });

  test.each<[string, GenerateOptions]>([
    ['greedy', {}],
    ['beam 4', { beam: 4, nBest: 3 }],
    ['coverage', { beam: 3, coveragePenalty: 0.3 }],
    ['sampling', { sampling: { seed: 5, topP: 0.9 } }],
  ])(
    'alone, in any batch, in any order, on any number of threads, to the bit: %s',
    async (_, search) => {
      const options = { maxLength: 14, scores: true, ...search };
      const together = await generator.generate(sources, options);
      const alone: GeneratedSequence[][] = [];
      for (const source of sources) alone.push(...(await generator.generate([source], options)));
      expect(alone).toEqual(together);
      const inSevens = await generator.generate(sources, { ...options, batchSize: 7 });
      expect(inSevens).toEqual(together);
      const reversed = await generator.generate([...sources].reverse(), options);
      expect(reversed.reverse()).toEqual(together);
      setNumThreads(1);
      try {
        expect(await generator.generate(sources, options)).toEqual(together);
      } finally {
        setNumThreads(2);
      }
    },
  );

  test('beside other calls at the same time', async () => {
    const alone = await generator.generate(sources, { maxLength: 14, scores: true });
    const calls = sources.map((source) =>
      generator.generate([source], { maxLength: 14, scores: true }),
    );
    calls.push(generator.generate(sources, { beam: 2, maxLength: 9 }));
    const together = (await Promise.all(calls)).slice(0, sources.length);
    expect(together.map(([targets]) => targets)).toEqual(alone);
  });
});

describe('a search among known probabilities', () => {
  // Tokens 0 to 6: pad, bos, eos, and four more.
  const probabilities = [0.05, 0.05, 0.2, 0.4, 0.15, 0.1, 0.05];
  const source = [1, 3, 2];
  let model: Transformer;
  let generator: SequenceGenerator;
  beforeAll(() => {
    model = modelOf(probabilities);
    generator = new SequenceGenerator(model, { specialIds });
  });
  afterAll(() => {
    model.dispose();
  });
  const search = async (options: GenerateOptions) =>
    (await generator.generate([source], options))[0] ?? [];
  // Pad and bos are never generated; the others share their probability.
  const logProbability = (token: number) => Math.log((probabilities[token] as number) / 0.9);

  test('greedy takes the most probable token until the maximum length', async () => {
    const [found] = await search({ maxLength: 4, scores: true });
    expect(found).toMatchObject({ ids: [3, 3, 3, 3], ended: false });
    for (const score of found?.tokenScores ?? []) expect(score).toBeCloseTo(logProbability(3), 5);
  });

  test('by default a target has at most twice the tokens of the source and 50 more', async () => {
    const long = modelOf(probabilities);
    long.growPositions(200);
    const [found] = await best(new SequenceGenerator(long, { specialIds }), [source]);
    expect(found?.ids).toHaveLength(2 * source.length + 50);
    long.dispose();
  });

  test('without a length penalty a beam finds that the empty target is the most probable', async () => {
    const found = await search({ beam: 3, nBest: 3, lengthPenalty: 0, maxLength: 6 });
    expect(found.map(({ ids }) => ids)).toEqual([[], [3], [3, 3]]);
    found.forEach(({ score, ids }) => {
      expect(score).toBeCloseTo(ids.length * logProbability(3) + logProbability(2), 5);
    });
  });

  test("length penalties divide by length^alpha, or by GNMT's formula, the end token counted", async () => {
    // Without the end token, which may not be one of the first two, the others share 0.7.
    const sum = 2 * Math.log(0.4 / 0.7) + logProbability(2);
    const third = async (lengthPenalty: GenerateOptions['lengthPenalty']) => {
      const options = { beam: 3, nBest: 3, minLength: 2, maxLength: 3, lengthPenalty };
      return (await search(options)).find(({ ids, ended }) => ended && ids.join() === '3,3')?.score;
    };
    expect(await third(0)).toBeCloseTo(sum, 5);
    expect(await third(1)).toBeCloseTo(sum / 3, 5);
    expect(await third({ kind: 'power', alpha: 0.6 })).toBeCloseTo(sum / 3 ** 0.6, 5);
    expect(await third({ kind: 'gnmt', alpha: 0.6 })).toBeCloseTo(sum / (8 / 6) ** 0.6, 5);
  });

  test('no end token comes before the minimum length', async () => {
    const [found] = await search({ beam: 2, lengthPenalty: 0, minLength: 3, maxLength: 8 });
    expect(found).toMatchObject({ ids: [3, 3, 3], ended: true });
  });

  test('lengths may be relative to the source', async () => {
    const [[short], [long]] = (await generator.generate([source, [1, 3, 4, 5, 6, 2]], {
      maxLength: { ratio: 1.5, plus: -1 },
      suppress: [2],
    })) as [GeneratedSequence[], GeneratedSequence[]];
    // 1.5 * 3 - 1 = 3.5, rounded up, and 1.5 * 6 - 1 = 8.
    expect([short?.ids.length, long?.ids.length]).toEqual([4, 8]);
    const [found] = await search({
      beam: 2,
      lengthPenalty: 0,
      minLength: { ratio: 0.9 },
      maxLength: 9,
    });
    // 0.9 * 3, rounded down.
    expect(found?.ids).toEqual([3, 3]);
    const atMost = await generator.generate([source], { maxLength: { ratio: 100 }, suppress: [2] });
    expect(atMost[0]?.[0]?.ids).toHaveLength(40);
  });

  test('suppressed tokens are never generated', async () => {
    const [found] = await search({ suppress: [3, 2], maxLength: 3 });
    expect(found?.ids).toEqual([4, 4, 4]);
  });

  test('a target begins with its prefix, whose scores are the model’s own', async () => {
    const [found] = await search({ prefix: [6, 5], maxLength: 4, scores: true });
    expect(found?.ids).toEqual([6, 5, 3, 3]);
    expect(found?.tokenScores[0]).toBeCloseTo(Math.log(0.05), 5);
    expect(found?.tokenScores[2]).toBeCloseTo(logProbability(3), 5);
  });

  test('no two tokens in a row occur twice with noRepeatNgram 2', async () => {
    const [found] = await search({ noRepeatNgram: 2, suppress: [2], maxLength: 8 });
    expect(found?.ids).toEqual([3, 3, 4, 3, 5, 3, 6, 3]);
  });

  test('no token occurs twice with noRepeatNgram 1', async () => {
    const [found] = await search({ noRepeatNgram: 1, suppress: [2], maxLength: 4 });
    expect(found?.ids).toEqual([3, 4, 5, 6]);
  });

  test('a repetition penalty makes tokens of the target less probable', async () => {
    // Logits are negative here: log(0.4) * 2 = log(0.16), which is below log(0.2) of eos.
    const [found] = await search({ repetitionPenalty: 2, suppress: [2], maxLength: 3 });
    expect(found?.ids).toEqual([3, 3, 3]);
    const [harder] = await search({ repetitionPenalty: 2.2, suppress: [2], maxLength: 3 });
    expect(harder?.ids).toEqual([3, 4, 3]);
  });

  test('samples have the probabilities of the model', async () => {
    const counts = new Map<number, number>();
    for (let seed = 0; seed < 40; seed++) {
      const samples = await search({ nBest: 50, maxLength: 1, sampling: { seed } });
      for (const { ids, ended } of samples) {
        const token = ended ? 2 : (ids[0] as number);
        counts.set(token, (counts.get(token) ?? 0) + 1);
      }
    }
    // Of 2,000 samples; four standard deviations are at most 45.
    for (const token of [2, 3, 4, 5, 6]) {
      const expected = (2000 * (probabilities[token] as number)) / 0.9;
      expect(Math.abs((counts.get(token) ?? 0) - expected)).toBeLessThan(45);
    }
  });

  test('topK and topP leave out the least probable tokens', async () => {
    const tokensOf = async (sampling: NonNullable<GenerateOptions['sampling']>) => {
      const found = await search({ nBest: 100, maxLength: 1, sampling });
      return [...new Set(found.map(({ ids, ended }) => (ended ? 2 : (ids[0] as number))))].sort();
    };
    expect(await tokensOf({ topK: 1 })).toEqual([3]);
    expect(await tokensOf({ topK: 3 })).toEqual([2, 3, 4]);
    // 0.4 / 0.9 and 0.2 / 0.9 add up to 0.67.
    expect(await tokensOf({ topP: 0.5 })).toEqual([2, 3]);
    expect(await tokensOf({ temperature: 0.01 })).toEqual([3]);
  });

  test('a sample depends on the seed', async () => {
    const sample = async (seed: number) =>
      (await search({ maxLength: 20, suppress: [2], sampling: { seed } }))[0]?.ids;
    expect(await sample(1)).toEqual(await sample(1));
    expect(await sample(1)).not.toEqual(await sample(2));
  });

  test('a beam wider than the vocabulary is no fault', async () => {
    const found = await search({ beam: 20, nBest: 20, lengthPenalty: 0, maxLength: 2 });
    // The empty target, and of two tokens the end or one of the four others after each of the four.
    expect(found).toHaveLength(20);
    expect(found[0]?.ids).toEqual([]);
  });

  test('the score is null unless it is computed', async () => {
    expect((await search({ maxLength: 3 }))[0]?.score).toBeNull();
    expect((await search({ maxLength: 3, sampling: true }))[0]?.score).toBeNull();
    expect((await search({ maxLength: 3, scores: true }))[0]?.score).toBeCloseTo(
      3 * logProbability(3),
      5,
    );
  });

  test('a target ends as it is where no token is left', async () => {
    // After 3, 4, 5 and 6, each of which may occur once, only the end token is left, which is too early.
    for (const options of [{}, { beam: 2 }, { sampling: true }]) {
      const found = await search({ ...options, noRepeatNgram: 1, minLength: 6, maxLength: 9 });
      expect(found[0]?.ended).toBe(false);
      expect([...(found[0]?.ids ?? [])].sort()).toEqual([3, 4, 5, 6]);
    }
  });

  test('equal scores are in the order of ids', async () => {
    const even = modelOf([0.2, 0.2, 0.01, 0.2, 0.2, 0.19]);
    const [targets = []] = await new SequenceGenerator(even, { specialIds }).generate([source], {
      beam: 2,
      nBest: 2,
      maxLength: 1,
    });
    expect(targets.map(({ ids }) => ids)).toEqual([[3], [4]]);
    even.dispose();
  });
});

describe('beam search finds what an exhaustive search finds', () => {
  test.each([0, 0.6, 1, 1.5])('with alpha %d', async (alpha) => {
    const model = evalModel(7, { ...small, N: 1 });
    const generator = new SequenceGenerator(model, { specialIds });
    const source = [1, 5, 4, 6, 2];
    const longest = 4;
    // All targets of up to 4 tokens of ids 3 to 6, ended or cut off.
    const all: { ids: number[]; ended: boolean; score: number }[] = [];
    const extend = (ids: number[], sum: number) => {
      const scores = stepScores(model, source, ids).at(-1) as number[];
      const rest = Math.log(scores.slice(2).reduce((total, one) => total + Math.exp(one), 0));
      const scoreOf = (token: number) => sum + (scores[token] as number) - rest;
      const length = ids.length + 1;
      all.push({ ids, ended: true, score: scoreOf(2) / length ** alpha });
      for (const token of [3, 4, 5, 6]) {
        const score = scoreOf(token);
        if (length < longest) extend([...ids, token], score);
        else all.push({ ids: [...ids, token], ended: false, score: score / length ** alpha });
      }
    };
    extend([], 0);
    all.sort((a, b) => b.score - a.score);
    const [found = []] = await generator.generate([source], {
      beam: 256,
      nBest: 10,
      lengthPenalty: alpha,
      patience: Infinity,
      maxLength: longest,
    });
    expect(found).toHaveLength(10);
    found.forEach(({ ids, ended, score }, rank) => {
      expect({ ids, ended }).toEqual({ ids: all[rank]?.ids, ended: all[rank]?.ended });
      expect(score).toBeCloseTo(all[rank]?.score as number, 5);
    });
    model.dispose();
  });
});

describe('score', () => {
  test('gives the log-probabilities of the target that the modules give', async () => {
    const model = evalModel(30);
    const generator = new SequenceGenerator(model, { specialIds });
    const pairs = [
      { source: [1, 4, 5, 2], target: [7, 8, 9] },
      { source: [1, 9, 2], target: [] },
      { source: [1, 20, 21, 22, 23, 2], target: [29, 3, 17, 28, 6, 6] },
    ];
    const scores = await generator.score(pairs);
    pairs.forEach(({ source, target }, index) => {
      const rows = stepScores(model, source, target);
      const expected = [...target, 2].map((token, position) => rows[position]?.[token] as number);
      const { score, tokenScores } = scores[index] as { score: number; tokenScores: number[] };
      expect(tokenScores).toHaveLength(expected.length);
      tokenScores.forEach((one, i) => {
        expect(one).toBeCloseTo(expected[i] as number, 5);
      });
      expect(score).toBeCloseTo(
        expected.reduce((sum, one) => sum + one, 0),
        4,
      );
    });
    model.dispose();
  });
});

describe('weights that are NaN', () => {
  test.each([5, 700])('are an error in every search, with %d tokens', async (vocabulary) => {
    const model = evalModel(vocabulary);
    noGrad(() => model.generator.proj.weight.fill_(NaN));
    const generator = new SequenceGenerator(model, { specialIds });
    const source = [1, 3, 2];
    for (const options of [{}, { beam: 3 }, { sampling: true }, { prefix: [3] }]) {
      await expect(generator.generate([source], options)).rejects.toThrow(
        'SequenceGenerator.generate: sources[0]: the probabilities of output token 1 are NaN',
      );
    }
    await expect(generator.score([{ source, target: [3] }])).rejects.toThrow(
      'SequenceGenerator.score: pairs[0]: the probabilities of output token 1 are NaN',
    );
    noGrad(() => model.encoder.norm?.parameters()[0]?.fill_(NaN));
    await expect(generator.encode([source])).rejects.toThrow('states of source 0 are NaN');
    model.dispose();
  });
});

describe('attention weights', () => {
  test('have a row for each token and add up to 1', async () => {
    const model = evalModel(30);
    const generator = new SequenceGenerator(model, { specialIds });
    const source = [1, 5, 6, 7, 8, 2];
    for (const attention of [true, { layer: 0 }, { layer: 1, head: 3 }]) {
      const [found] = await best(generator, [source], { attention, maxLength: 9, beam: 2 });
      const rows = found?.attention ?? [];
      expect(rows).toHaveLength((found?.ids.length ?? 0) + (found?.ended === true ? 1 : 0));
      for (const row of rows) {
        expect(row).toHaveLength(source.length);
        expect(row.reduce((sum, one) => sum + one, 0)).toBeCloseTo(1, 5);
      }
    }
    model.dispose();
  });
});

describe('a generator', () => {
  const sources = makeSources(6, 30);
  let model: Transformer;
  let generator: SequenceGenerator;
  beforeAll(() => {
    model = evalModel(30);
    generator = new SequenceGenerator(model, { specialIds });
  });
  afterAll(() => {
    model.dispose();
  });

  test('reports the certain tokens while it searches, and results as they are found', async () => {
    const certain: number[][] = [];
    const found: number[] = [];
    const [result] = await best(generator, sources.slice(0, 1), {
      maxLength: 30,
      suppress: [2],
      onTokens: (index, ids) => {
        expect(index).toBe(0);
        certain.push(ids);
      },
      onFound: (index) => found.push(index),
    });
    expect(found).toEqual([0]);
    expect(certain.length).toBeGreaterThan(1);
    for (const ids of certain) expect(result?.ids.slice(0, ids.length)).toEqual(ids);
  });

  test('leaves no tensor behind', async () => {
    await generator.generate(sources, { maxLength: 5 });
    const before = memory().tensors;
    await generator.generate(sources, { maxLength: 5, beam: 3 });
    await generator.score([{ source: [1, 2], target: [5] }]);
    expect(memory().tensors).toBe(before);
  });

  test('stops at a signal, before and during the search', async () => {
    const reason = new Error('enough');
    const aborted = generator.generate(sources, { signal: AbortSignal.abort(reason) });
    await expect(aborted).rejects.toBe(reason);
    const controller = new AbortController();
    const stopped = generator.generate(sources, {
      maxLength: 40,
      suppress: [2],
      signal: controller.signal,
      onTokens: () => {
        controller.abort(reason);
      },
    });
    await expect(stopped).rejects.toBe(reason);
    expect(await best(generator, sources, { maxLength: 4 })).toHaveLength(6);
  });

  test('uses changed weights', async () => {
    const before = await best(generator, sources, { maxLength: 6 });
    noGrad(() => model.generator.proj.weight.neg_());
    const after = await best(generator, sources, { maxLength: 6 });
    expect(after.map(({ ids }) => ids)).not.toEqual(before.map(({ ids }) => ids));
    noGrad(() => model.generator.proj.weight.neg_());
    expect(await best(generator, sources, { maxLength: 6 })).toEqual(before);
  });

  test('decodes a model with hooks by its modules, and says so once', async () => {
    const warnings: string[] = [];
    const listen = ({ message }: Error) => warnings.push(message);
    process.on('warning', listen);
    const before = await best(generator, sources, { maxLength: 6 });
    let calls = 0;
    const hook = model.encoder.layers.at(0).registerForwardHook(() => {
      calls++;
    });
    const hooked = await best(generator, sources, { maxLength: 6 });
    await generator.generate(sources, { maxLength: 2 });
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', listen);
    expect(hooked.map(({ ids }) => ids)).toEqual(before.map(({ ids }) => ids));
    expect(calls).toBeGreaterThan(0);
    expect(warnings).toEqual([
      'the model is decoded by its modules, which is slower than native decoding: ' +
        'encoder.layers.0 has hooks or a user-defined forward',
    ]);
    await expect(generator.generate(sources, { beam: 2 })).rejects.toThrow(
      'SequenceGenerator.generate: a beam is for models that are decoded natively, but encoder.layers.0',
    );
    hook.remove();
  });

  test('decodes a model with modules of its own by these', async () => {
    const own = evalModel(30);
    class Silent extends PositionwiseFeedForward {
      override forward(input: Parameters<PositionwiseFeedForward['forward']>[0]) {
        return tidy(() => super.forward(input).mul(0));
      }
    }
    own.decoder.layers.at(1).feedForward = new Silent(32, 48).eval();
    const [found] = await best(new SequenceGenerator(own, { specialIds }), sources, {
      maxLength: 5,
    });
    const src = tensor(sources.slice(0, 1), { dtype: 'int64' });
    const expected = await greedy(own, src, paddingMask(src, 0), { ...specialIds, maxLength: 5 });
    expect(found?.ids).toEqual(expected[0]?.ids);
    own.dispose();
  });

  test.each<[string, GenerateOptions, string]>([
    ['beam 0', { beam: 0 }, 'beam must be an integer from 1 to 256, got 0'],
    ['beam null', { beam: null as never }, 'beam must be an integer, got null'],
    [
      'more targets than the beam',
      { beam: 2, nBest: 3 },
      'nBest must be at most the beam, 2, got 3',
    ],
    ['sampling with a beam', { beam: 2, sampling: true }, 'sampling has no beam, got beam 2'],
    [
      'a negative alpha',
      { lengthPenalty: -1 },
      'lengthPenalty must be a finite number of at least 0',
    ],
    [
      'an unknown penalty',
      { lengthPenalty: { kind: 'wu' as never, alpha: 1 } },
      "'power' or 'gnmt'",
    ],
    ['topP 2', { sampling: { topP: 2 } }, 'topP must be in (0, 1], got 2'],
    [
      'temperature 0',
      { sampling: { temperature: 0 } },
      'temperature must be a finite number above 0',
    ],
    ['an unknown id', { suppress: [30] }, 'suppress[0] must be an integer from 0 to 29, got 30'],
    ['beam 257', { beam: 257 }, 'beam must be an integer from 1 to 256, got 257'],
    ['a prefix with eos', { prefix: [5, 2] }, 'prefix[1] must not be pad, bos or eos, got 2'],
    [
      'suppressing everything',
      { suppress: Array.from({ length: 28 }, (_, id) => id + 2) },
      'suppress leaves no token to generate',
    ],
    ['a long prefix', { prefix: [3, 4, 5], maxLength: 2 }, 'the prefix of 3 tokens exceeds'],
    ['a ratio below 0', { maxLength: { ratio: -1 } }, 'maxLength.ratio must be a finite number'],
    ['a length without a ratio', { minLength: {} as never }, 'minLength.ratio must be a finite'],
    ['half a token', { maxLength: { ratio: 1, plus: 0.5 } }, 'maxLength.plus must be an integer'],
    ['maxLength 41', { maxLength: 41 }, "exceeds the 40 positions of the model's table"],
    ['layer 2', { attention: { layer: 2 } }, 'layer must be an integer from 0 to 1, got 2'],
    [
      'an unknown option',
      { beams: 4 } as never,
      'unknown option "beams"; valid options: attention,',
    ],
    ['a signal that is none', { signal: 5 as never }, 'signal must be an AbortSignal, got 5'],
  ])('refuses %s', async (_, options, message) => {
    await expect(generator.generate(sources, options)).rejects.toThrow(message);
  });

  test.each<[string, unknown, string]>([
    ['no array', 5, 'sources must be an array of arrays of ids, got 5'],
    ['a text', ['a'], 'sources[0] must be an array of ids, got the string "a"'],
    [
      'an id outside of the vocabulary',
      [
        [1, 2],
        [1, 99],
      ],
      'sources[1][1] must be an integer from 0 to 29',
    ],
    ['an empty source', [[]], 'sources[0] is empty'],
    [
      'a long source',
      [Array(41).fill(3)],
      "sources[0] has 41 tokens, the model's position table 40",
    ],
  ])('refuses %s as sources', async (_, given, message) => {
    await expect(generator.generate(given as never)).rejects.toThrow(message);
  });

  test('refuses a model in training mode', async () => {
    model.train();
    await expect(generator.generate(sources)).rejects.toThrow('is in training mode');
    model.eval();
  });

  test('refuses a target that contains eos or is too long', async () => {
    const score = (target: number[]) => generator.score([{ source: [1, 2], target }]);
    await expect(score([5, 2])).rejects.toThrow('pairs[0].target must not contain eos, 2');
    await expect(score(new Array<number>(40).fill(5))).rejects.toThrow('has 41 tokens with eos');
  });
});

describe('precision', () => {
  const sources = makeSources(12, 60);
  const options = { maxLength: 12, scores: true, beam: 2 };

  test('bfloat16 gives what float32 gives for weights that bfloat16 holds', async () => {
    const model = evalModel(60, { ...small, dModel: 48, h: 3 });
    noGrad(() => {
      for (const parameter of model.parameters()) {
        tidy(() => parameter.copy_(parameter.to({ dtype: 'bfloat16' }).to({ dtype: 'float32' })));
      }
    });
    const exact = await new SequenceGenerator(model, { specialIds }).generate(sources, options);
    const half = new SequenceGenerator(model, { specialIds, precision: 'bfloat16' });
    expect(await half.generate(sources, options)).toEqual(exact);
    model.dispose();
  });

  test.each(['bfloat16', 'int8'] as const)(
    '%s gives nearly the scores of float32',
    async (precision) => {
      const model = evalModel(60, { ...small, dModel: 64, dFf: 128 });
      const exact = new SequenceGenerator(model, { specialIds });
      const narrow = new SequenceGenerator(model, { specialIds, precision });
      const targets = makeSources(12, 60).map((ids) => ids.slice(1, -1));
      const pairs = sources.map((source, index) => ({
        source,
        target: targets[index] as number[],
      }));
      const expected = await exact.score(pairs);
      const scores = await narrow.score(pairs);
      scores.forEach(({ tokenScores }, index) => {
        tokenScores.forEach((score, i) => {
          expect(Math.abs(score - (expected[index]?.tokenScores[i] as number))).toBeLessThan(0.1);
        });
      });
      // They are not the same, or the weights were not narrowed.
      expect(scores).not.toEqual(expected);
      model.dispose();
    },
  );

  test('with int8, too, a source gives the same target in any batch', async () => {
    const model = evalModel(60, { ...small, dModel: 64, dFf: 100 });
    const generator = new SequenceGenerator(model, { specialIds, precision: 'int8' });
    const together = await generator.generate(sources, options);
    const alone: GeneratedSequence[][] = [];
    for (const source of sources) alone.push(...(await generator.generate([source], options)));
    expect(alone).toEqual(together);
    model.dispose();
  });

  test('refuses an unknown one', () => {
    const model = evalModel(30);
    expect(() => new SequenceGenerator(model, { specialIds, precision: 'int4' as never })).toThrow(
      "precision must be 'float32', 'bfloat16' or 'int8', got the string \"int4\"",
    );
    model.dispose();
  });
});

describe('an ensemble', () => {
  test('generates what the mean of the probabilities says', async () => {
    // Tokens 3 and 4 have 0.5 and 0.3 in one model, 0.1 and 0.5 in the other: 0.3 and 0.4 in the mean.
    const first = modelOf([0.05, 0.05, 0.1, 0.5, 0.3]);
    const second = modelOf([0.05, 0.05, 0.3, 0.1, 0.5]);
    const generator = new SequenceGenerator(first, { specialIds, ensemble: [second] });
    const [found] = await best(generator, [[1, 3, 2]], { maxLength: 2, scores: true });
    expect(found?.ids).toEqual([4, 4]);
    // Without pad and bos, which have 0.1 in both, the others share 0.9.
    for (const score of found?.tokenScores ?? []) expect(score).toBeCloseTo(Math.log(0.4 / 0.9), 5);
    const [scored] = await generator.score([{ source: [1, 3, 2], target: [3] }]);
    expect(scored?.score).toBeCloseTo(Math.log(0.3) + Math.log(0.2), 5);
    first.dispose();
    second.dispose();
  });

  test('of one model twice gives what the model gives', async () => {
    const model = evalModel(40, { ...small, activation: 'gelu' });
    const twin = model.clone();
    const sources = makeSources(9, 40);
    const options = { beam: 3, nBest: 2, maxLength: 12, attention: true };
    const alone = await new SequenceGenerator(model, { specialIds }).generate(sources, options);
    const both = new SequenceGenerator(model, { specialIds, ensemble: [twin] });
    const together = await both.generate(sources, options);
    expect(together.map((targets) => targets.map(({ ids }) => ids))).toEqual(
      alone.map((targets) => targets.map(({ ids }) => ids)),
    );
    together.forEach((targets, index) => {
      targets.forEach(({ score, attention }, rank) => {
        expect(score).toBeCloseTo(alone[index]?.[rank]?.score as number, 5);
        expect(attention).toEqual(alone[index]?.[rank]?.attention);
      });
    });
    model.dispose();
    twin.dispose();
  });

  test('may have models of different sizes, and gives a source the same target in any batch', async () => {
    const models = [
      evalModel(40),
      evalModel(40, { ...small, N: 1, dModel: 48, h: 3, positions: 'rotary' }),
    ];
    const [first, ...others] = models as [Transformer, Transformer];
    const generator = new SequenceGenerator(first, { specialIds, ensemble: others });
    const sources = makeSources(10, 40);
    const together = await generator.generate(sources, { maxLength: 10, beam: 2, scores: true });
    for (const [index, source] of sources.entries()) {
      const [alone] = await generator.generate([source], { maxLength: 10, beam: 2, scores: true });
      expect(alone).toEqual(together[index]);
    }
    for (const model of models) model.dispose();
  });

  test('needs one target vocabulary', () => {
    const [model, other] = [evalModel(40), evalModel(30)];
    expect(() => new SequenceGenerator(model, { specialIds, ensemble: [other] })).toThrow(
      'SequenceGenerator: ensemble[0] has 30 target ids, the model 40',
    );
    expect(() => new SequenceGenerator(model, { specialIds, ensemble: [5 as never] })).toThrow(
      'SequenceGenerator: ensemble[0]: model must be a Transformer',
    );
    model.dispose();
    other.dispose();
  });
});
