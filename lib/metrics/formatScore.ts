import { checkInteger, checkObject, orDefault } from '../runtime/arguments.js';
import type { BleuScore } from './bleu.js';
import type { MetricScore } from './metric.js';

/**
 * A score on one line, as sacrebleu prints it: `BLEU|nrefs:1|… = 37.10 68.0/44.6/31.3/22.4 (BP = 1.000 …)`.
 *
 * @param decimals of the score; default 2
 * @throws TypeError if `score` is not a score of this package
 */
export function formatScore(score: MetricScore, decimals?: number): string {
  checkObject('formatScore', 'score', score, 'a score, such as that of corpusBleu');
  const digits = checkInteger('formatScore', 'decimals', orDefault(decimals, 2), 0, 20);
  const line = `${score.name}|${score.signature} = ${score.score.toFixed(digits)}`;
  return isBleu(score) ? `${line} ${partsOf(score)}` : line;
}

function isBleu(score: MetricScore): score is BleuScore {
  return score.name === 'BLEU';
}

function partsOf({ precisions, brevityPenalty, systemLength, referenceLength }: BleuScore): string {
  const ratio = referenceLength > 0 ? systemLength / referenceLength : 0;
  return (
    `${precisions.map((precision) => precision.toFixed(1)).join('/')} ` +
    `(BP = ${brevityPenalty.toFixed(3)} ratio = ${ratio.toFixed(3)} ` +
    `hyp_len = ${systemLength} ref_len = ${referenceLength})`
  );
}
