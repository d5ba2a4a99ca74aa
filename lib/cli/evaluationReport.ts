/** What `evaluate` prints. */
import type { DecodingPrecision } from '../decode/native/preparedModel.js';
import type { PairedComparison, PairedScores } from '../metrics/bootstrap/pairedBootstrap.js';
import { formatScore } from '../metrics/formatScore.js';
import type { CorpusScores } from '../metrics/scoreTranslations.js';
import { counted } from '../runtime/counted.js';
import type { Evaluation } from '../train/evaluate.js';

/** What was measured. */
export interface Evaluated {
  readonly data: string;
  /** The folder whose loss was computed; null: none. */
  readonly model: string | null;
  /** The file of the translations; null: those of the model. */
  readonly score: string | null;
  readonly sentences: number;
  /** Translations without a visible character. */
  readonly empty: number;
  readonly loss: Evaluation | null;
  readonly scores: CorpusScores;
  /** How the model translated; null: it did not. */
  readonly search: {
    readonly beam: number;
    readonly lengthPenalty: number | undefined;
    readonly precision: DecodingPrecision;
    readonly seconds: number;
    /** Of all translations. */
    readonly tokens: number;
  } | null;
  against:
    | (PairedScores & { readonly name: string; readonly samples: number; readonly seed: number })
    | null;
}

/** The result for people, with line ends. */
export function describeEvaluation(evaluated: Evaluated): string {
  const { sentences, empty, loss, scores, search, against } = evaluated;
  const lines: string[] = [];
  if (loss !== null) {
    const { perplexity, accuracy, tokens } = loss;
    lines.push(
      `loss ${loss.loss.toFixed(4)}, perplexity ${perplexity.toFixed(2)}, ` +
        `accuracy ${(100 * (accuracy ?? NaN)).toFixed(2)} % of ${counted(tokens, 'target token')}`,
    );
  }
  lines.push(formatScore(scores.bleu), formatScore(scores.chrf), formatScore(scores.ter));
  lines.push(`${counted(sentences, 'sentence')}${empty > 0 ? `, ${empty} of them empty` : ''}`);
  if (search !== null) lines.push(describeSearch(search, sentences));
  if (against !== null) {
    lines.push('', `against ${against.name} (${against.samples} samples, seed ${against.seed}):`);
    lines.push(comparison(scores.bleu.name, against.bleu));
    lines.push(comparison(scores.chrf.name, against.chrf));
    lines.push(comparison(scores.ter.name, against.ter));
  }
  return `${lines.join('\n')}\n`;
}

function describeSearch(
  { beam, precision, seconds, tokens }: NonNullable<Evaluated['search']>,
  sentences: number,
): string {
  const how = beam === 1 ? 'greedy' : `beam ${beam}`;
  const rate = (count: number) => (count / seconds).toFixed(1);
  return (
    `translated in ${seconds.toFixed(1)} s (${how}, ${precision}): ` +
    `${rate(sentences)} sentences/s, ${rate(tokens)} tokens/s`
  );
}

/** `BLEU 37.10 (37.08 ± 0.93) against 36.20 (36.21 ± 0.95), p = 0.0210 *`; the star: below 0.05. */
function comparison(name: string, { system, baseline, pValue }: PairedComparison): string {
  const [own, other] = [system, baseline].map(
    ({ score, mean, margin }) => `${score.toFixed(2)} (${mean.toFixed(2)} ± ${margin.toFixed(2)})`,
  );
  return `${name} ${own} against ${other}, p = ${pValue.toFixed(4)}${pValue < 0.05 ? ' *' : ''}`;
}

/** The result for programs. */
export function recordOf(evaluated: Evaluated): object {
  const { data, model, score, sentences, empty, loss, scores, search, against } = evaluated;
  return {
    data,
    model,
    score,
    sentences,
    empty,
    loss: loss?.loss ?? null,
    perplexity: loss?.perplexity ?? null,
    accuracy: loss?.accuracy ?? null,
    targetTokens: loss?.tokens ?? null,
    ...scores,
    search:
      search === null
        ? null
        : {
            ...search,
            lengthPenalty: search.lengthPenalty ?? null,
            tokensPerSecond: search.tokens / search.seconds,
          },
    against,
  };
}
