/** Scores of sacrebleu, on sentences in three languages and on random texts; see make_scores.py. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  corpusBleu,
  corpusChrf,
  corpusTer,
  pairedBootstrap,
  sentenceBleu,
  sentenceChrf,
  sentenceTer,
  type MetricScore,
} from 'torchformer';
import { longCorpus, randomCorpus, type Segment } from './randomTexts.js';

type MetricName = 'bleu' | 'chrf' | 'ter';
type Options = Readonly<Record<string, unknown>>;

interface Expected {
  readonly metric: MetricName;
  readonly options: Options;
  readonly signature: string;
  readonly score: number;
  readonly [fact: string]: unknown;
}

interface ExpectedPair {
  readonly signature: string;
  readonly baseline: Record<'score' | 'mean' | 'margin', number>;
  readonly system: Record<'score' | 'mean' | 'margin', number>;
  readonly pValue: number;
}

interface Fixture {
  readonly sacrebleu: string;
  readonly random: { readonly count: number; readonly seed: number; readonly sha256: string };
  readonly corpora: Readonly<Record<string, Record<'first' | 'all', readonly Expected[]>>>;
  readonly sentences: readonly {
    readonly metric: MetricName;
    readonly options: Options;
    readonly scores: readonly number[];
  }[];
  readonly long: {
    readonly count: number;
    readonly seed: number;
    readonly scores: readonly number[];
  };
  readonly paired: readonly ({ readonly seed: number; readonly samples: number } & Record<
    MetricName,
    ExpectedPair
  >)[];
  readonly unicode: Readonly<Record<string, readonly [number, number][]>>;
}

const read = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'));
const fixture = read('../fixtures/scores.json') as Fixture;
const { count, seed, sha256 } = fixture.random;
const random = randomCorpus(count, seed);
const corpora: Record<string, readonly Segment[]> = {
  ...(read('sentences.json') as Record<string, Segment[]>),
  random,
};

const corpusMetrics = { bleu: corpusBleu, chrf: corpusChrf, ter: corpusTer };
const sentenceMetrics = { bleu: sentenceBleu, chrf: sentenceChrf, ter: sentenceTer };

/** sacrebleu's names of options as ours: `smooth_method` is `smoothMethod`. */
function ours(options: Options): object {
  const renamed = Object.entries(options).map(([name, value]) => [
    name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ]);
  return Object.fromEntries(renamed) as object;
}

/** Our signature without the version of this package. */
function signatureIn(score: MetricScore): string {
  return score.signature.replace(/\|torchformer:[^|]+$/, '');
}

it('makes the random texts that the scores are of', () => {
  const texts = random.flatMap(({ hypothesis, references }) => [hypothesis, ...references]);
  expect(texts.length).toBeGreaterThan(count);
  expect(createHash('sha256').update(texts.join('\x01')).digest('hex')).toBe(sha256);
});

describe.each(Object.entries(fixture.corpora))('the corpus %s', (name, expected) => {
  const segments = corpora[name]!;
  const hypotheses = segments.map(({ hypothesis }) => hypothesis);

  it.each(expected.first)('has the $metric of sacrebleu with $options', (wanted) => {
    const references = segments.map(({ references }) => references[0]!);
    compare(wanted, corpusMetrics[wanted.metric](hypotheses, references, ours(wanted.options)));
  });

  it.each(expected.all)('has it with all its references: $metric $options', (wanted) => {
    const references = segments.map(({ references }) => references);
    compare(wanted, corpusMetrics[wanted.metric](hypotheses, references, ours(wanted.options)));
  });
});

function compare({ metric, options, signature, ...facts }: Expected, found: MetricScore): void {
  expect(signatureIn(found)).toBe(signature);
  for (const [fact, value] of Object.entries(facts)) {
    const own = (found as unknown as Record<string, unknown>)[fact];
    expect([own].flat().length, fact).toBe([value].flat().length);
    [value].flat().forEach((wanted, index) => {
      const number = [own].flat()[index];
      if (typeof wanted === 'number') expect(number, fact).toBeCloseTo(wanted, 8);
      else expect(number, fact).toBe(wanted);
    });
  }
}

describe.each(fixture.sentences)(
  'single random texts, $metric with $options',
  ({ metric, options, scores }) => {
    it('have the scores of sacrebleu', () => {
      const found = random.map(
        ({ hypothesis, references }) =>
          sentenceMetrics[metric](hypothesis, references, ours(options)).score,
      );
      const wrong = scores.flatMap((wanted, index) =>
        Math.abs(wanted - found[index]!) <= 1e-4
          ? []
          : [{ wanted, found: found[index], ...random[index]! }],
      );
      expect(wrong.slice(0, 3)).toEqual([]);
      expect(found.length).toBe(count);
    });
  },
);

it('has the TER of sacrebleu for long texts, where its search ends at its limits', () => {
  const { count, seed, scores } = fixture.long;
  const found = longCorpus(count, seed).map(
    ({ hypothesis, references }) => sentenceTer(hypothesis, references).score,
  );
  expect(found.length).toBe(scores.length);
  scores.forEach((wanted, index) => expect(found[index], `text ${index}`).toBeCloseTo(wanted, 8));
});

describe.each(fixture.paired)(
  'paired bootstrap with the seed $seed',
  async ({ seed, samples, bleu, chrf, ter }) => {
    // As in make_scores.py: the first references and the hypotheses, judged by the last references.
    const kept = random.filter(({ references }) => references.length > 1);
    const found = await pairedBootstrap(
      kept.map(({ references }) => references[0]!),
      kept.map(({ hypothesis }) => hypothesis),
      kept.map(({ references }) => references.at(-1)!),
      { seed, samples, bleu: { tokenize: '13a' } },
    );

    it.each(Object.entries({ bleu, chrf, ter }))(
      'draws the corpora of sacrebleu: %s has its means, intervals and p-value',
      (name, expected) => {
        const { baseline, system, pValue, signature } = found[name as MetricName];
        expect(signatureIn({ name, score: 0, signature })).toBe(expected.signature);
        expect(pValue).toBe(expected.pValue);
        for (const [own, wanted] of [
          [baseline, expected.baseline],
          [system, expected.system],
        ] as const) {
          expect(own.score).toBeCloseTo(wanted.score, 8);
          // sacrebleu adds up the corpora in float32.
          expect(own.mean).toBeCloseTo(wanted.mean, 3);
          expect(own.margin).toBeCloseTo(wanted.margin, 3);
        }
      },
    );
  },
);

describe('characters of Unicode 14', () => {
  const { assigned, space, ...properties } = fixture.unicode;
  const codes = assigned!.flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, index) => first + index),
  );
  const inRanges = (ranges: readonly [number, number][]) => {
    const members = new Set<number>();
    for (const [first, last] of ranges)
      for (let code = first; code <= last; code++) members.add(code);
    return members;
  };

  it.each(Object.entries(properties))(
    'have the property %s here as in Python, on which the tokenizer intl rests',
    (name, ranges) => {
      const members = inRanges(ranges);
      const pattern = new RegExp(`\\p{${name}}`, 'u');
      const differing = codes.filter(
        (code) => pattern.test(String.fromCodePoint(code)) !== members.has(code),
      );
      expect(differing).toEqual([]);
      expect(members.size).toBeGreaterThan(500);
    },
  );

  it('separate words here as in Python', () => {
    const wordsIn = (text: string) => sentenceBleu(text, 'a', { tokenize: 'none' }).systemLength;
    const members = inRanges(space!);
    expect([...members].filter((code) => wordsIn(`a${String.fromCodePoint(code)}a`) !== 2)).toEqual(
      [],
    );
    // No other character separates words.
    const all = codes.map((code) => `a${String.fromCodePoint(code)}a`).join('');
    expect(wordsIn(all)).toBe(members.size + 1);
  });
});
