/** What `translate` prints for a line. */
import type { TranslatedLine } from '../decode/lineTranslation.js';
import type { Translation, TranslationHypothesis } from '../decode/translation.js';

export interface FormatFlags {
  json?: boolean;
  scores?: boolean;
  alignments?: boolean;
  nBest: number;
}

/** Whether the output needs more than the texts. */
export function needsDetails({ json, scores, alignments, nBest }: FormatFlags): boolean {
  return json === true || scores === true || alignments === true || nBest > 1;
}

/** A text on one line, even if it contains line ends. */
export function oneLine(text: string): string {
  return text.replace(/[\r\n]+/g, ' ');
}

/**
 * One line for an input, or one for each of its best outputs, with line ends.
 *
 * Fields are separated by ` ||| `, as Moses does: with n-best the number of the input from 0 comes first,
 * behind the text is its score, and behind that the alignment.
 */
export function formatted(line: TranslatedLine<Translation>, flags: FormatFlags): string {
  if (flags.json === true) return `${JSON.stringify(recordOf(line, flags))}\n`;
  const { number, output } = line;
  const count = Math.max(1, Math.min(flags.nBest, output.hypotheses.length));
  return Array.from({ length: count }, (_, place) => {
    const hypothesis = output.hypotheses[place];
    const fields = [oneLine(hypothesis?.text ?? output.text)];
    if (flags.nBest > 1) fields.unshift(String(number - 1));
    if (flags.scores === true || flags.nBest > 1) fields.push(scoreOf(hypothesis?.score ?? 0));
    if (flags.alignments === true) {
      fields.push(
        alignmentOf(output, place)
          .map(([i, j]) => `${i}-${j}`)
          .join(' '),
      );
    }
    return `${fields.join(' ||| ')}\n`;
  }).join('');
}

function recordOf({ number, output }: TranslatedLine<Translation>, flags: FormatFlags): object {
  const { text } = output;
  const hypotheses = output.hypotheses.slice(0, flags.nBest);
  return {
    line: number,
    text,
    ...(flags.alignments === true ? { sourceTokens: wordsOf(output) } : {}),
    hypotheses: hypotheses.map(({ text: own, score, ended, tokens }, place) => ({
      text: own,
      score,
      ended,
      ...(flags.scores === true || flags.alignments === true ? { tokens } : {}),
      ...(flags.alignments === true ? { alignment: alignmentOf(output, place) } : {}),
    })),
  };
}

function scoreOf(score: number): string {
  return score.toFixed(4);
}

/** The source's tokens without bos and eos. */
function wordsOf({ sentences, sourceTokens }: Translation): readonly string[] {
  if (sentences === null) return sourceTokens.slice(1, -1);
  return sentences.flatMap((sentence) => sentence.sourceTokens.slice(1, -1));
}

/**
 * For each token of an output the token of the source that it attends to most: pairs of their indices,
 * counted without bos and eos.
 */
export function alignmentOf(translation: Translation, place: number): [number, number][] {
  const parts = translation.sentences ?? [translation];
  const pairs: [number, number][] = [];
  let sources = 0;
  let targets = 0;
  for (const { sourceTokens, hypotheses } of parts) {
    const { tokens, attention } = hypotheses[place] ?? emptyHypothesis;
    attention?.forEach((weights, token) => {
      const own = weights.slice(1, -1);
      if (own.length > 0) pairs.push([sources + own.indexOf(Math.max(...own)), targets + token]);
    });
    sources += Math.max(0, sourceTokens.length - 2);
    targets += tokens.length;
  }
  return pairs;
}

const emptyHypothesis: Pick<TranslationHypothesis, 'tokens' | 'attention'> = {
  tokens: [],
  attention: null,
};
