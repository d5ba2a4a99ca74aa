/**
 * The demo's parallel corpus, English to Chinese, generated from the ICU data in Node.js without any
 * download: dates, times, large numbers, numbers in Chinese digits, money, measures, relative times and
 * durations.
 *
 * Phrases are held out by value. A hash of the value alone assigns every date, time of day, number and
 * duration to one side, for all kinds of phrase and all seeds: 8 of 100 values are held out, 4 of 100 are
 * for validation, and the rest is for training. A held-out number appears in no training phrase, whether
 * as a sum of money, a measure or a relative time. A time of day is its hour and minute: if 15:05 is
 * held out, so is 15:05:07. A duration is its length; the numbers in it are training numbers, so
 * that a held-out duration combines known parts. The number 1 is always a training number, since
 * its English singular is unlike any other number's form.
 */
import { SeededRandom } from 'torchformer';
import { phraseKinds } from './phraseKinds.js';

export interface CorpusPair {
  /** The kind of phrase. */
  kind: string;
  src: string;
  tgt: string;
}

export interface Corpus {
  train: CorpusPair[];
  validation: CorpusPair[];
  heldOut: CorpusPair[];
}

export type CorpusSide = keyof Corpus;

export interface CorpusOptions {
  /** Seed for the choice of phrases and their order; it does not affect the sides. Default 1. */
  seed?: number;
  /** Phrases of each kind, by side. Default 3000, 50 and 125: 25,400 in total. */
  sizes?: Partial<Record<CorpusSide, number>>;
}

/** The side that a value belongs to, in whichever phrase it appears. */
export function sideOf(value: string): CorpusSide {
  if (value === 'number 1') return 'train';
  const share = hash(value) % 100;
  return share < 8 ? 'heldOut' : share < 12 ? 'validation' : 'train';
}

/**
 * Generates the corpus. No English phrase occurs twice, and none has two translations.
 *
 * @throws RangeError if a kind has fewer phrases than requested
 * @throws Error if this Node.js was built without Chinese
 */
export function makeCorpus({ seed = 1, sizes = {} }: CorpusOptions = {}): Corpus {
  if (!Intl.NumberFormat.supportedLocalesOf('zh').includes('zh')) {
    throw new Error(
      'this Node.js has no data for Chinese; use one with full ICU, as nodejs.org has',
    );
  }
  const wanted = { train: 3000, validation: 50, heldOut: 125, ...sizes };
  const random = new SeededRandom(seed);
  const corpus: Corpus = { train: [], validation: [], heldOut: [] };
  const translations = new Map<string, string>();
  for (const kind of phraseKinds) {
    const missing = { ...wanted };
    // Small kinds run out of new phrases; this limits the failures in a row.
    for (let patience = 100_000; patience > 0; patience--) {
      if (missing.train + missing.validation + missing.heldOut === 0) break;
      const { src, tgt, value, parts = [] } = kind.draw(random);
      const known = translations.get(src);
      if (known !== undefined && known !== tgt) {
        throw new Error(`"${src}" has two translations: "${known}" and "${tgt}"`);
      }
      const side = sideOf(value);
      if (known !== undefined || missing[side] === 0) continue;
      if (parts.some((part) => sideOf(part) !== 'train')) continue;
      translations.set(src, tgt);
      corpus[side].push({ kind: kind.name, src, tgt });
      missing[side]--;
      patience = 100_000;
    }
    const short = missing.train + missing.validation + missing.heldOut;
    if (short > 0) throw new RangeError(`there are ${short} too few phrases of kind ${kind.name}`);
  }
  random.shuffle(corpus.train);
  return corpus;
}

/** FNV-1a followed by a mixer, since the low bits of FNV alone are poor for short texts. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 0x01000193);
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
  return (state ^ (state >>> 16)) >>> 0;
}
