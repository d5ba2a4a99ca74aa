/** From the targets of a search to texts, tokens and scores. */
import type { Tokenizer } from '../data/tokenizers/tokenizer.js';
import type { PreparedText } from './prepareTexts.js';
import type { GeneratedSequence } from './sequenceGenerator.js';
import { joinPieces } from './splitSentences.js';
import type {
  TranslatedSentence,
  TranslatedToken,
  Translation,
  TranslationHypothesis,
} from './translation.js';

/** A piece of a text with its targets, the best first. */
export interface FoundPiece {
  readonly text: string;
  readonly source: readonly number[];
  targets: readonly GeneratedSequence[];
}

/** A text that was prepared, with the targets of its pieces. */
export interface FoundText extends Omit<PreparedText, 'pieces'> {
  readonly pieces: readonly FoundPiece[];
}

/** The outputs for an empty text. */
export const nothing: Omit<Translation, 'sentences'> = {
  text: '',
  sourceTokens: [],
  hypotheses: [],
};

/** The output of each text. */
export async function outputsOf(
  tokenizer: Tokenizer,
  texts: readonly FoundText[],
): Promise<string[]> {
  const best = texts.flatMap(({ pieces }) => pieces.map(({ targets }) => targets[0]?.ids ?? []));
  const decoded = await tokenizer.decodeBatch(best);
  let next = 0;
  return texts.map(({ separators, pieces }) => {
    const outputs = pieces.map(() => decoded[next++] as string);
    return joinPieces(separators, outputs);
  });
}

/** All outputs of each text, with tokens and scores; of a text that was split also its sentences. */
export async function translationsOf(
  tokenizer: Tokenizer,
  texts: readonly FoundText[],
  isSplitting: boolean,
): Promise<Translation[]> {
  return Promise.all(
    texts.map(async ({ separators, pieces, isCut }) => {
      const sentences = await Promise.all(pieces.map((piece) => sentenceOf(tokenizer, piece)));
      if (isSplitting || isCut) return joinSentences(separators, sentences);
      const [{ text, sourceTokens, hypotheses } = nothing] = sentences;
      return { text, sourceTokens, hypotheses, sentences: null };
    }),
  );
}

/** Tokens as in the vocabulary, with their scores. */
export function tokensOf(
  tokenizer: Tokenizer,
  ids: readonly number[],
  scores: readonly number[],
): TranslatedToken[] {
  return ids.map((id, index) => ({
    token: tokenOf(tokenizer, id),
    score: scores[index] as number,
  }));
}

function tokenOf(tokenizer: Tokenizer, id: number): string {
  return tokenizer.tokenOf(id) ?? `<${id}>`;
}

async function sentenceOf(
  tokenizer: Tokenizer,
  { text: source, source: ids, targets }: FoundPiece,
): Promise<TranslatedSentence> {
  const decoded = await tokenizer.decodeBatch(targets.map((target) => target.ids));
  const hypotheses = targets.map((target, index) =>
    hypothesisOf(tokenizer, decoded[index] as string, target),
  );
  const sourceTokens = ids.map((id) => tokenOf(tokenizer, id));
  return { source, text: hypotheses[0]?.text ?? '', sourceTokens, hypotheses };
}

function hypothesisOf(
  tokenizer: Tokenizer,
  text: string,
  { ids, ended, score, tokenScores, attention }: GeneratedSequence,
): TranslationHypothesis {
  return {
    text,
    // Translator asks for scores.
    score: score as number,
    ended,
    tokens: tokensOf(tokenizer, ids, tokenScores),
    endScore: ended ? (tokenScores.at(-1) ?? null) : null,
    attention: attention === null ? null : attention.slice(0, ids.length),
  };
}

function joinSentences(
  separators: readonly string[],
  sentences: readonly TranslatedSentence[],
): Translation {
  const filled = sentences.filter(({ hypotheses }) => hypotheses.length > 0);
  const count =
    filled.length === 0 ? 0 : Math.min(...filled.map(({ hypotheses }) => hypotheses.length));
  const hypotheses = Array.from({ length: count }, (_, place): TranslationHypothesis => {
    const parts = filled.map((sentence) => sentence.hypotheses[place] as TranslationHypothesis);
    return {
      text: joinPieces(
        separators,
        sentences.map((sentence) => sentence.hypotheses[place]?.text ?? ''),
      ),
      score: parts.reduce((sum, { score }) => sum + score, 0),
      ended: parts.every(({ ended }) => ended),
      tokens: parts.flatMap(({ tokens }) => tokens),
      endScore: null,
      attention: null,
    };
  });
  const text = joinPieces(
    separators,
    sentences.map((sentence) => sentence.text),
  );
  const sourceTokens = sentences.flatMap((sentence) => sentence.sourceTokens);
  return { text, sourceTokens, hypotheses, sentences };
}
