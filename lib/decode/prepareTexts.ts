/** From texts to the ids that a model gets. */
import { frame } from '../data/encodePairs.js';
import { isBlank, maxTextLength } from '../data/text.js';
import type { SpecialIds } from '../data/tokenizers/specialIds.js';
import type { Tokenizer } from '../data/tokenizers/tokenizer.js';
import { layoutOfParts, type SentenceSplitter } from './splitSentences.js';
import { splitText } from './splitText.js';

/** A piece of a text that the model accepts. */
export interface TextPiece {
  readonly text: string;
  /** Its ids with bos and eos; empty: it has no token, and its output is empty. */
  readonly source: readonly number[];
}

/** A text as it is translated. */
export interface PreparedText {
  readonly pieces: readonly TextPiece[];
  /** What is before, between and behind the pieces in the output. */
  readonly separators: readonly string[];
  /** Whether a piece is a part of what was too long for the model. */
  readonly isCut: boolean;
}

/** A text that the model does not accept. */
export interface RefusedText {
  /** Its tokens with bos and eos; null: it has too many characters to be tokenized. */
  readonly tokens: number | null;
}

/** How {@link prepareTexts} makes ids of texts. */
export interface PreparingOptions {
  readonly tokenizer: Tokenizer;
  readonly specialIds: SpecialIds;
  /** Tokens that the model accepts, with bos and eos. */
  readonly limit: number;
  /** Null: a text is one piece. */
  readonly splitter: SentenceSplitter | null;
  /** Whether to cut pieces that are too long, instead of refusing their text. */
  readonly cutsPieces: boolean;
  readonly signal: AbortSignal | undefined;
}

/**
 * Makes ids of texts, in their order. A text that is too long does not keep the others from being
 * prepared.
 */
export async function prepareTexts(
  texts: readonly string[],
  options: PreparingOptions,
): Promise<(PreparedText | RefusedText)[]> {
  const { tokenizer, splitter, signal } = options;
  const layouts = texts.map((text) => {
    if (splitter !== null) return splitter(text);
    return isBlank(text)
      ? { pieces: [], separators: [''] }
      : { pieces: [text], separators: ['', ''] };
  });
  const isRefused = layouts.map(({ pieces }) => pieces.some(isTooLarge));
  const sources = await sourcesOf(
    layouts.flatMap(({ pieces }, index) => (isRefused[index] === true ? [] : pieces)),
    options,
  );
  let next = 0;
  const prepared: (PreparedText | RefusedText)[] = [];
  for (const [index, { pieces, separators }] of layouts.entries()) {
    if (isRefused[index] === true) {
      prepared.push({ tokens: null });
      continue;
    }
    const own = pieces.map((text) => ({ text, source: sources[next++] as number[] }));
    const tooLong = own.find(({ source }) => source.length > options.limit);
    if (tooLong === undefined) prepared.push({ pieces: own, separators, isCut: false });
    else if (!options.cutsPieces) prepared.push({ tokens: tooLong.source.length });
    else prepared.push(await cut(own, separators, options));
    signal?.throwIfAborted();
  }
  return prepared;

  async function cut(
    whole: readonly TextPiece[],
    around: readonly string[],
    { limit }: PreparingOptions,
  ): Promise<PreparedText> {
    const parts: TextPiece[] = [];
    const separators = [around[0] as string];
    for (const [index, piece] of whole.entries()) {
      if (piece.source.length <= limit) {
        parts.push(piece);
      } else {
        // Each part is framed with bos and eos.
        const texts = await splitText(piece.text, tokenizer, limit - 2);
        const sources = await sourcesOf(texts, options);
        parts.push(...texts.map((text, part) => ({ text, source: sources[part] as number[] })));
        separators.push(...layoutOfParts(piece.text, texts).separators.slice(1, -1));
      }
      separators.push(around[index + 1] as string);
    }
    return { pieces: parts, separators, isCut: true };
  }
}

function isTooLarge(piece: string): boolean {
  return piece.length > maxTextLength;
}

/** Ids of each text with bos and eos; empty if it has no token. */
async function sourcesOf(
  texts: readonly string[],
  { tokenizer, specialIds, signal }: PreparingOptions,
): Promise<number[][]> {
  const special = new Set<number>(Object.values(specialIds));
  const encoded = await tokenizer.encodeBatch(texts, { signal });
  return encoded.map((all) => {
    const ids = all.filter((id) => !special.has(id));
    return ids.length === 0 ? [] : frame(ids, specialIds);
  });
}
