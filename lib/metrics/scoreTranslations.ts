/** All scores of a corpus at once, without holding the event loop. */
import { checkOptions, checkSignal, orDefault } from '../runtime/arguments.js';
import { bleuMetric, type BleuOptions, type BleuScore } from './bleu.js';
import { chrfMetric, type ChrfOptions, type ChrfScore } from './chrf.js';
import { checkCorpus, type Corpus, type References } from './corpus.js';
import { withSignature } from './corpusScore.js';
import { sumOf, type Metric, type MetricScore } from './metric.js';
import { terMetric, type TerOptions, type TerScore } from './ter.js';
import { tokenizerFor } from './tokenizers/bleuTokenizer.js';
import { Turns } from './turns.js';

/** Settings of the metrics. */
export interface MetricOptions {
  /** Options of BLEU. The default of `tokenize` depends on the references, see {@link tokenizerFor}. */
  bleu?: BleuOptions | undefined;
  /** Options of chrF. */
  chrf?: ChrfOptions | undefined;
  /** Options of TER. */
  ter?: TerOptions | undefined;
}

/** Options of {@link scoreTranslations}. */
export interface ScoreOptions extends MetricOptions {
  /** Stops between two sentences; the promise is then rejected with its reason. */
  signal?: AbortSignal | undefined;
}

/** The scores of a corpus by all metrics. */
export interface CorpusScores {
  /** BLEU with its precisions and lengths. */
  readonly bleu: BleuScore;
  /** chrF, or chrF++. */
  readonly chrf: ChrfScore;
  /** TER with its edits. */
  readonly ter: TerScore;
}

/**
 * BLEU, chrF and TER of a corpus. Other work of the event loop goes on meanwhile.
 *
 * @param hypotheses a translation for each sentence, not tokenized
 * @param references for each sentence a reference, or a list of them
 * @throws TypeError, RangeError as {@link corpusBleu}, {@link corpusChrf} and {@link corpusTer}
 * @throws the reason of the signal
 */
export async function scoreTranslations(
  hypotheses: readonly string[],
  references: References,
  options: ScoreOptions = {},
): Promise<CorpusScores> {
  const owner = 'scoreTranslations';
  checkOptions(owner, options, [...metricOptionNames, 'signal']);
  const signal = checkSignal(owner, 'signal', options.signal);
  const corpus = checkCorpus(owner, hypotheses, references);
  const metrics = metricsOf(owner, options, corpus.references);
  const turns = new Turns(signal);
  const score = async <Score extends MetricScore>(metric: Metric<Score>) => {
    const sums = sumOf(await statisticsOf(metric, corpus, turns));
    return withSignature(metric, sums, corpus.referenceCount);
  };
  return {
    bleu: await score(metrics.bleu),
    chrf: await score(metrics.chrf),
    ter: await score(metrics.ter),
  };
}

/** The names of {@link MetricOptions}. */
export const metricOptionNames: readonly string[] = ['bleu', 'chrf', 'ter'];

/** The metrics with their settings. */
export interface Metrics {
  readonly bleu: Metric<BleuScore>;
  readonly chrf: Metric<ChrfScore>;
  readonly ter: Metric<TerScore>;
}

/** @throws TypeError, RangeError naming the option */
export function metricsOf(
  owner: string,
  { bleu, chrf, ter }: MetricOptions,
  references: References,
): Metrics {
  const bleuOptions = orDefault(bleu, {});
  checkOptions(`${owner} bleu`, bleuOptions, Object.keys(bleuOptions));
  const tokenize = bleuOptions.tokenize ?? tokenizerFor(references);
  return {
    bleu: bleuMetric(`${owner} bleu`, { ...bleuOptions, tokenize }),
    chrf: chrfMetric(`${owner} chrf`, orDefault(chrf, {})),
    ter: terMetric(`${owner} ter`, orDefault(ter, {})),
  };
}

/** The statistics of each sentence. */
export async function statisticsOf(
  metric: Metric<MetricScore>,
  { hypotheses, references }: Corpus,
  turns: Turns,
): Promise<number[][]> {
  const statistics: number[][] = [];
  for (const [index, hypothesis] of hypotheses.entries()) {
    statistics.push(metric.statistics(hypothesis, references[index] as readonly string[]));
    if (turns.isOver) await turns.next();
  }
  return statistics;
}
