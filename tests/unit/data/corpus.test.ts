import { describe, expect, test } from 'vitest';
import {
  makeCorpus,
  sideOf,
  type CorpusPair,
  type CorpusSide,
} from '../../../examples/demo/corpus.js';

const corpus = makeCorpus();
const sides: CorpusSide[] = ['train', 'validation', 'heldOut'];
const kinds = [...new Set(corpus.train.map(({ kind }) => kind))];

function ofKind(pairs: readonly CorpusPair[], ...names: string[]): CorpusPair[] {
  return pairs.filter(({ kind }) => names.includes(kind));
}

const numberKinds = ['Chinese digits', 'money', 'measure', 'relative time'];
const scales: Record<string, number> = {
  thousand: 1e3,
  million: 1e6,
  billion: 1e9,
  trillion: 1e12,
};

/** The numbers that an English phrase says, read from its text alone. */
function numbersIn({ kind, src }: CorpusPair): number[] {
  return [...src.matchAll(/(\d[\d,]*(?:\.\d+)?)(?: (thousand|million|billion|trillion)\b)?/g)].map(
    ([, digits = '', scale]) => {
      const number = Number(digits.replaceAll(',', ''));
      return kind === 'large number' && scale
        ? Math.round(number * (scales[scale] ?? NaN))
        : number;
    },
  );
}

/** The date that an English phrase says, as days since 1970. */
function dayOf({ src }: CorpusPair): number {
  return Date.parse(`${src.replace(/^\w+day, /, '')} UTC`) / 86_400_000;
}

/** The hour and minute that an English phrase says. */
function minuteOf({ src }: CorpusPair): string {
  const [, hour, minute, half] = /^(\d+):(\d\d)(?::\d\d)?\s(.*)$/.exec(src) ?? [];
  const afternoon = /PM|afternoon|evening|night/.test(half ?? '');
  return `${(Number(hour) % 12) + (afternoon ? 12 : 0)}:${minute}`;
}

function common<Value>(first: Iterable<Value>, second: Iterable<Value>): Value[] {
  const known = new Set(first);
  return [...new Set(second)].filter((value) => known.has(value));
}

describe("the demo's corpus", () => {
  test('has eight kinds of phrase and 25,400 pairs', () => {
    expect(kinds).toHaveLength(8);
    for (const kind of kinds) {
      expect(sides.map((side) => ofKind(corpus[side], kind).length)).toEqual([3000, 50, 125]);
    }
  });

  test('is the same for the same seed and another for another', () => {
    const sizes = { train: 200, validation: 10, heldOut: 20 };
    expect(makeCorpus({ seed: 7, sizes })).toEqual(makeCorpus({ seed: 7, sizes }));
    expect(makeCorpus({ seed: 8, sizes })).not.toEqual(makeCorpus({ seed: 7, sizes }));
  });

  test('has no English phrase twice', () => {
    const all = sides.flatMap((side) => corpus[side].map(({ src }) => src));
    expect(new Set(all).size).toBe(all.length);
  });

  test('translates as ICU does', () => {
    const day = new Date(Date.UTC(2024, 2, 5));
    const style = { dateStyle: 'full', timeZone: 'UTC' } as const;
    const example = new Intl.DateTimeFormat('zh', style).format(day);
    expect(example).toContain('2024年3月5日');
    const dates = ofKind(corpus.train, 'date');
    for (const pair of dates) {
      const date = new Date(dayOf(pair) * 86_400_000);
      const full = new Intl.DateTimeFormat('zh', style).format(date);
      // The longer style has the weekday behind the date.
      expect(full.startsWith(pair.tgt)).toBe(true);
      expect(pair.tgt === full).toBe(/^\w+day, /.test(pair.src));
    }
  });
});

describe('what is held out', () => {
  test('no date of training', () => {
    const [train, validation, heldOut] = sides.map((side) =>
      ofKind(corpus[side], 'date').map(dayOf),
    );
    expect(heldOut?.every(Number.isInteger)).toBe(true);
    expect(common(train ?? [], heldOut ?? [])).toEqual([]);
    expect(common(train ?? [], validation ?? [])).toEqual([]);
  });

  test('no time of day of training, with seconds or without', () => {
    const [train, validation, heldOut] = sides.map((side) =>
      ofKind(corpus[side], 'time').map(minuteOf),
    );
    expect(heldOut?.every((value) => /^\d+:\d\d$/.test(value))).toBe(true);
    expect(common(train ?? [], heldOut ?? [])).toEqual([]);
    expect(common(train ?? [], validation ?? [])).toEqual([]);
  });

  test('no number of training, in whatever kind of phrase it stands', () => {
    const withNumbers = [...numberKinds, 'large number'];
    const train = ofKind(corpus.train, ...withNumbers, 'duration').flatMap(numbersIn);
    const validation = ofKind(corpus.validation, ...withNumbers).flatMap(numbersIn);
    const heldOut = ofKind(corpus.heldOut, ...withNumbers).flatMap(numbersIn);
    expect(heldOut).toHaveLength(5 * 125);
    expect(common(train, heldOut)).toEqual([]);
    expect(common(train, validation)).toEqual([]);
  });

  test('no duration of training, and only numbers that training has', () => {
    const spoken = (pairs: CorpusPair[]) => ofKind(pairs, 'duration').map(({ src }) => src);
    expect(common(spoken(corpus.train), spoken(corpus.heldOut))).toEqual([]);
    for (const pair of ofKind(corpus.heldOut, 'duration')) {
      for (const number of numbersIn(pair)) expect(sideOf(`number ${number}`)).toBe('train');
    }
  });

  test('lies on the same side for every seed', () => {
    const sizes = { train: 1000, validation: 10, heldOut: 20 };
    const other = makeCorpus({ seed: 99, sizes });
    for (const [one, two] of [
      [corpus.train, other.heldOut],
      [other.train, corpus.heldOut],
    ] as const) {
      expect(common(ofKind(one, 'date').map(dayOf), ofKind(two, 'date').map(dayOf))).toEqual([]);
      expect(
        common(
          one.map(({ src }) => src),
          two.map(({ src }) => src),
        ),
      ).toEqual([]);
    }
  });

  test('is about 8 of 100 values, and never the number 1', () => {
    const counts = { train: 0, validation: 0, heldOut: 0 };
    for (let number = 2; number < 20_000; number++) counts[sideOf(`number ${number}`)]++;
    expect(counts.heldOut / 19_998).toBeCloseTo(0.08, 2);
    expect(counts.validation / 19_998).toBeCloseTo(0.04, 2);
    expect(sideOf('number 1')).toBe('train');
  });
});

describe.each(kinds)('to learn: %s', (kind) => {
  const train = ofKind(corpus.train, kind);

  test('every character and word of an unseen phrase is in training phrases of its kind', () => {
    const known = (read: (pair: CorpusPair) => Iterable<string>) =>
      new Set(train.flatMap((pair) => [...read(pair)]));
    const words = ({ src }: CorpusPair) => src.match(/\p{L}+/gu) ?? [];
    const knownSource = known(({ src }) => src);
    const knownTarget = known(({ tgt }) => tgt);
    const knownWords = known(words);
    for (const pair of [...ofKind(corpus.validation, kind), ...ofKind(corpus.heldOut, kind)]) {
      expect([...pair.src].filter((letter) => !knownSource.has(letter))).toEqual([]);
      expect([...pair.tgt].filter((letter) => !knownTarget.has(letter))).toEqual([]);
      expect(words(pair).filter((word) => !knownWords.has(word))).toEqual([]);
    }
  });

  test('no phrase is long', () => {
    for (const { src, tgt } of train) {
      expect(src.length).toBeLessThanOrEqual(50);
      expect(tgt.length).toBeLessThanOrEqual(30);
    }
  });
});
