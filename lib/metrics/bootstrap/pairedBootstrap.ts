/** Paired bootstrap resampling (Koehn, 2004): whether a difference between two systems may be chance. */
import { checkInteger, checkOptions, checkSignal, orDefault } from '../../runtime/arguments.js';
import { checkCorpus, type References } from '../corpus.js';
import type { Metric, MetricScore } from '../metric.js';
import {
  metricOptionNames,
  metricsOf,
  statisticsOf,
  type MetricOptions,
} from '../scoreTranslations.js';
import { signatureOf } from '../signature.js';
import { Turns } from '../turns.js';
import { NumpyRandom } from './numpyRandom.js';

/** Options of {@link pairedBootstrap}. */
export interface PairedBootstrapOptions extends MetricOptions {
  /** How many corpora are drawn. Default 1000. */
  samples?: number | undefined;
  /** Determines which sentences are drawn. Default 12345, as in sacrebleu. */
  seed?: number | undefined;
  /** Stops between two corpora; the promise is then rejected with its reason. */
  signal?: AbortSignal | undefined;
}

/** The score of a system and its confidence interval. */
export interface ConfidentScore {
  /** Of the corpus itself. */
  readonly score: number;
  /** Mean over the corpora that were drawn. */
  readonly mean: number;
  /** 95 % of them lie within `mean` ± `margin`: half of the distance between the outer 2.5 %. */
  readonly margin: number;
}

/** Two systems by one metric. */
export interface PairedComparison {
  /** The first system. */
  readonly baseline: ConfidentScore;
  /** The second system. */
  readonly system: ConfidentScore;
  /**
   * The probability of a difference at least as large if the systems were equally good; below 0.05 it is
   * usually called significant. 1 if the systems have the same score in every corpus.
   */
  readonly pValue: number;
  /** As of a score, with the number of samples (`bs`) and the seed. */
  readonly signature: string;
}

/** Two systems by all metrics. */
export interface PairedScores {
  /** By BLEU. */
  readonly bleu: PairedComparison;
  /** By chrF. */
  readonly chrf: PairedComparison;
  /** By TER. */
  readonly ter: PairedComparison;
}

/**
 * Compares two systems on the same sentences: many corpora of the same size are drawn from them, with
 * repetition, and both systems are scored on each. Equal to `sacrebleu --paired-bs`, including the corpora
 * that a seed draws, up to the float32 sums that sacrebleu uses. Other work of the event loop goes on
 * meanwhile.
 *
 * @param baseline translations of one system
 * @param system translations of the other one, of the same sentences
 * @param references for each sentence a reference, or a list of them
 * @throws TypeError, RangeError if an argument is invalid, or the numbers of texts differ
 * @throws the reason of the signal
 */
export async function pairedBootstrap(
  baseline: readonly string[],
  system: readonly string[],
  references: References,
  options: PairedBootstrapOptions = {},
): Promise<PairedScores> {
  const owner = 'pairedBootstrap';
  checkOptions(owner, options, [...metricOptionNames, 'samples', 'seed', 'signal']);
  const samples = checkInteger(owner, 'samples', orDefault(options.samples, 1000), 1);
  const seed = checkInteger(owner, 'seed', orDefault(options.seed, 12345), 0);
  const signal = checkSignal(owner, 'signal', options.signal);
  const corpora = [
    checkCorpus(`${owner} baseline`, baseline, references),
    checkCorpus(`${owner} system`, system, references),
  ] as const;
  const [{ references: lists, referenceCount }] = corpora;
  checkInteger(owner, 'number of sentences', lists.length, 1, 2 ** 21);
  const metrics = metricsOf(owner, options, lists);
  const turns = new Turns(signal);
  const contestants = async (metric: Metric<MetricScore>) => ({
    metric,
    baseline: new Contestant(metric, await statisticsOf(metric, corpora[0], turns)),
    system: new Contestant(metric, await statisticsOf(metric, corpora[1], turns)),
  });
  const pairs = {
    bleu: await contestants(metrics.bleu),
    chrf: await contestants(metrics.chrf),
    ter: await contestants(metrics.ter),
  };
  const all = Object.values(pairs).flatMap((pair) => [pair.baseline, pair.system]);
  const random = new NumpyRandom(seed);
  const drawn = new Uint32Array(lists.length);
  for (let sample = 0; sample < samples; sample++) {
    for (let place = 0; place < drawn.length; place++) {
      drawn[place] = random.below(lists.length);
      if (place % 1024 === 1023 && turns.isOver) await turns.next();
    }
    for (const contestant of all) {
      contestant.scoreSample(drawn);
      if (turns.isOver) await turns.next();
    }
  }
  const compared = ({ metric, baseline: one, system: other }: (typeof pairs)['bleu']) => ({
    baseline: one.result(),
    system: other.result(),
    pValue: pValueOf(one, other),
    signature: signatureOf(referenceCount, [['bs', samples], ['seed', seed], ...metric.settings]),
  });
  return { bleu: compared(pairs.bleu), chrf: compared(pairs.chrf), ter: compared(pairs.ter) };
}

/** A system with its scores. */
class Contestant {
  readonly #metric: Metric<MetricScore>;
  /** The statistics of all sentences, one after the other. */
  readonly #statistics: Float64Array;
  readonly #width: number;
  readonly score: number;
  /** The score of each corpus that was drawn. */
  readonly sampled: number[] = [];

  constructor(metric: Metric<MetricScore>, statistics: readonly (readonly number[])[]) {
    this.#metric = metric;
    this.#width = statistics[0]?.length ?? 0;
    this.#statistics = Float64Array.from(statistics.flat());
    const everything = Uint32Array.from(statistics.keys());
    this.score = metric.scoreOf(this.#sumOf(everything)).score;
  }

  scoreSample(drawn: Uint32Array): void {
    this.sampled.push(this.#metric.scoreOf(this.#sumOf(drawn)).score);
  }

  result(): ConfidentScore {
    const sorted = [...this.sampled].sort((a, b) => a - b);
    const outside = Math.floor(sorted.length / 40);
    const lower = sorted[outside] as number;
    const upper = sorted[sorted.length - 1 - outside] as number;
    return { score: this.score, mean: meanOf(sorted), margin: (upper - lower) / 2 };
  }

  #sumOf(drawn: Uint32Array): Float64Array {
    const sums = new Float64Array(this.#width);
    for (const sentence of drawn) {
      const start = sentence * this.#width;
      for (let index = 0; index < this.#width; index++) {
        sums[index] = (sums[index] as number) + (this.#statistics[start + index] as number);
      }
    }
    return sums;
  }
}

/**
 * How often the difference in a drawn corpus is larger than its mean by more than the difference of the
 * systems: the drawn differences, moved to a mean of 0, are what chance does.
 */
function pValueOf(baseline: Contestant, system: Contestant): number {
  const differences = baseline.sampled.map((score, sample) =>
    Math.abs((system.sampled[sample] as number) - score),
  );
  if (differences.every((difference) => difference === 0)) return 1;
  const mean = meanOf(differences);
  const real = Math.abs(baseline.score - system.score);
  const larger = differences.filter((difference) => difference - mean > real).length;
  return (larger + 1) / (differences.length + 1);
}

function meanOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}
