/**
 * The kinds of phrase in the demo's corpus. Both sides come from the ICU in Node.js through `Intl` and
 * are used unchanged: English as source, Chinese as target.
 */
import type { SeededRandom } from 'torchformer';

/** One phrase in both languages. */
export interface Phrase {
  src: string;
  tgt: string;
  /** The meaning of the phrase, independent of its wording: `date 2024-03-05`, `number 1234.5`. */
  value: string;
  /** Values inside it that must occur on their own in training: the numbers in a duration. */
  parts?: string[];
}

export interface PhraseKind {
  name: string;
  /** A random phrase of this kind. */
  draw(random: SeededRandom): Phrase;
}

type Both<Formatter> = readonly [english: Formatter, chinese: Formatter];

/** Creates formatters for both languages, once per set of options, since creating one is slow. */
function formatters<Options, Formatter>(
  make: (language: string, options: Options) => Formatter,
): (options: Options) => Both<Formatter> {
  const made = new Map<string, Both<Formatter>>();
  return (options) => {
    const key = JSON.stringify(options);
    const known = made.get(key);
    if (known !== undefined) return known;
    const both = [make('en', options), make('zh', options)] as const;
    made.set(key, both);
    return both;
  };
}

const dateFormats = formatters(
  (language, options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat(language, { timeZone: 'UTC', ...options }),
);
const numberFormats = formatters(
  (language, options: Intl.NumberFormatOptions) => new Intl.NumberFormat(language, options),
);
const relativeFormats = formatters(
  (language, options: Intl.RelativeTimeFormatOptions) =>
    new Intl.RelativeTimeFormat(language, options),
);
const listFormats = formatters(
  (language, options: Intl.ListFormatOptions) => new Intl.ListFormat(language, options),
);

/** The value of a number, the same in every kind of phrase that contains it. */
function numberValue(number: number): string {
  return `number ${number}`;
}

/** A number with at most `digits` digits and, half of the time, `decimals` decimals. */
function drawNumber(random: SeededRandom, digits: number, decimals: number): number {
  const limit = 10 ** (1 + random.below(digits));
  const scale = random.below(2) === 0 ? 1 : 10 ** decimals;
  return (1 + random.below(limit * scale - 1)) / scale;
}

/** `Tuesday, March 5, 2024` → `2024年3月5日星期二`, in three lengths, from 1950 to 2049. */
const date: PhraseKind = {
  name: 'date',
  draw(random) {
    const first = Date.UTC(1950, 0, 1);
    const days = (Date.UTC(2050, 0, 1) - first) / 86_400_000;
    const day = new Date(first + random.below(days) * 86_400_000);
    const [en, zh] = dateFormats({ dateStyle: random.pick(['full', 'long', 'medium'] as const) });
    const value = `date ${day.toISOString().slice(0, 10)}`;
    return { src: en.format(day), tgt: zh.format(day), value };
  },
};

/** `3:05:07 PM` or `3:05 in the afternoon` → `15:05:07` or `15:05`. */
const time: PhraseKind = {
  name: 'time',
  draw(random) {
    const [hour, minute, second] = [random.below(24), random.below(60), random.below(60)];
    const moment = new Date(Date.UTC(2000, 0, 1, hour, minute, second));
    const [en, zh] = dateFormats(
      random.pick<Intl.DateTimeFormatOptions>([
        { timeStyle: 'medium' },
        { timeStyle: 'short' },
        { hour: 'numeric', minute: '2-digit', dayPeriod: 'long' },
      ]),
    );
    // Seconds are not part of the value: if 15:05 is held out, it is never seen with any seconds.
    return { src: en.format(moment), tgt: zh.format(moment), value: `time ${hour}:${minute}` };
  },
};

/** `12.3 million` → `1230万`: English counts in thousands, Chinese in ten thousands. */
const largeNumber: PhraseKind = {
  name: 'large number',
  draw(random) {
    // Three significant digits are exact in both languages, so nothing is lost to rounding.
    const number = (1 + random.below(999)) * 10 ** (3 + random.below(10));
    const [en, zh] = numberFormats({
      notation: 'compact',
      compactDisplay: 'long',
      maximumSignificantDigits: 3,
    });
    return { src: en.format(number), tgt: zh.format(number), value: numberValue(number) };
  },
};

/** `4,382.5` → `四,三八二.五`: a number in Chinese digits. */
const chineseDigits: PhraseKind = {
  name: 'Chinese digits',
  draw(random) {
    const number = drawNumber(random, 6, 1);
    const [en] = numberFormats({});
    const [, zh] = numberFormats({ numberingSystem: 'hanidec' });
    return { src: en.format(number), tgt: zh.format(number), value: numberValue(number) };
  },
};

const currencies = [
  'USD',
  'EUR',
  'GBP',
  'CNY',
  'JPY',
  'KRW',
  'INR',
  'CHF',
  'CAD',
  'AUD',
  'MXN',
  'THB',
];

/** `1,234.50 US dollars` → `1,234.50美元`, `CN¥20.00` → `¥20.00`. */
const money: PhraseKind = {
  name: 'money',
  draw(random) {
    const currency = random.pick(currencies);
    const [en, zh] = numberFormats({
      style: 'currency',
      currency,
      currencyDisplay: random.pick(['symbol', 'name'] as const),
    });
    // A yen and a won have no decimals.
    const decimals = en.resolvedOptions().maximumFractionDigits ?? 2;
    const number = drawNumber(random, 5, decimals);
    return { src: en.format(number), tgt: zh.format(number), value: numberValue(number) };
  },
};

const units = [
  'kilometer',
  'mile',
  'meter',
  'centimeter',
  'foot',
  'inch',
  'kilogram',
  'gram',
  'pound',
  'ounce',
  'liter',
  'gallon',
  'celsius',
  'fahrenheit',
  'acre',
  'hectare',
  'megabyte',
  'gigabyte',
  'kilometer-per-hour',
  'mile-per-hour',
  'meter-per-second',
  'mile-per-gallon',
];

/** `23 kilometers per hour` → `每小时23公里`, `1 mile` → `1英里`. */
const measure: PhraseKind = {
  name: 'measure',
  draw(random) {
    // One is the only singular, and rare among random numbers.
    const number = random.below(30) === 0 ? 1 : drawNumber(random, 4, 1);
    const unit = random.pick(units);
    const [en, zh] = numberFormats({ style: 'unit', unit, unitDisplay: 'long' });
    return { src: en.format(number), tgt: zh.format(number), value: numberValue(number) };
  },
};

const timeUnits = ['second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year'] as const;

/** `in 23 months` → `23个月后`, `1 day ago` → `1天前`. */
const relativeTime: PhraseKind = {
  name: 'relative time',
  draw(random) {
    const number = random.below(30) === 0 ? 1 : 1 + random.below(999);
    const signed = random.below(2) === 0 ? number : -number;
    const unit = random.pick(timeUnits);
    const [en, zh] = relativeFormats({ numeric: 'always' });
    const [src, tgt] = [en.format(signed, unit), zh.format(signed, unit)];
    return { src, tgt, value: numberValue(number) };
  },
};

const durationUnits = [
  { unit: 'day', seconds: 86_400, limit: 100 },
  { unit: 'hour', seconds: 3600, limit: 24 },
  { unit: 'minute', seconds: 60, limit: 60 },
  { unit: 'second', seconds: 1, limit: 60 },
];

/** `3 hours, 25 minutes` → `3小时25分钟`, with two or three units. */
const duration: PhraseKind = {
  name: 'duration',
  draw(random) {
    const count = 2 + random.below(2);
    const start = random.below(durationUnits.length - count + 1);
    const counted = durationUnits
      .slice(start, start + count)
      .map((unit) => ({ ...unit, number: 1 + random.below(unit.limit - 1) }));
    const total = counted.reduce((sum, { number, seconds }) => sum + number * seconds, 0);
    const lists = listFormats({ type: 'unit', style: 'long' });
    const [src, tgt] = lists.map((list, language) =>
      list.format(
        counted.map(({ unit, number }) => {
          const format = numberFormats({ style: 'unit', unit, unitDisplay: 'long' })[language];
          return (format as Intl.NumberFormat).format(number);
        }),
      ),
    ) as [string, string];
    const parts = counted.map(({ number }) => numberValue(number));
    return { src, tgt, value: `duration ${total} s`, parts };
  },
};

export const phraseKinds: readonly PhraseKind[] = [
  date,
  time,
  largeNumber,
  chineseDigits,
  money,
  measure,
  relativeTime,
  duration,
];
