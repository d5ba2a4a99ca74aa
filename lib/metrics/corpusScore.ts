import { checkString } from '../runtime/arguments.js';
import { checkCorpus, referencesOf } from './corpus.js';
import { sumOf, type Metric, type MetricScore } from './metric.js';
import { signatureOf } from './signature.js';

/** The score of all hypotheses together. @throws TypeError, RangeError if a text is missing */
export function corpusScore<Score extends MetricScore>(
  owner: string,
  metric: Metric<Score>,
  hypotheses: unknown,
  references: unknown,
): Score {
  const corpus = checkCorpus(owner, hypotheses, references);
  const statistics = corpus.hypotheses.map((hypothesis, index) =>
    metric.statistics(hypothesis, corpus.references[index] as readonly string[]),
  );
  return withSignature(metric, sumOf(statistics), corpus.referenceCount);
}

/** The score of one hypothesis. @throws TypeError, RangeError if a text is missing */
export function sentenceScore<Score extends MetricScore>(
  owner: string,
  metric: Metric<Score>,
  hypothesis: unknown,
  references: unknown,
): Score {
  const text = checkString(owner, 'hypothesis', hypothesis);
  const texts = referencesOf(owner, 'references', references);
  return withSignature(metric, metric.statistics(text, texts), texts.length);
}

/** The score of sums of statistics. @param references of each hypothesis */
export function withSignature<Score extends MetricScore>(
  metric: Metric<Score>,
  sums: ArrayLike<number>,
  references: number | 'var',
): Score {
  const signature = signatureOf(references, metric.settings);
  return { ...metric.scoreOf(sums), signature } as Score;
}
