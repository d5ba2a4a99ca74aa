/** Tokens grouped into the words that a reader sees. */
import type { Tokenizer } from '../data/tokenizers/tokenizer.js';

/** A word of a text, and the tokens that it consists of. */
export interface TextWord {
  readonly text: string;
  /** Indices of its tokens. */
  readonly tokens: readonly number[];
}

const segmenter = new Intl.Segmenter(undefined, { granularity: 'word' });

/**
 * The words of a text, punctuation included, with their tokens. A token of several words joins them.
 *
 * @param starts for each token, where in the text it begins, in increasing order; -1: nowhere
 */
export function groupByWord(text: string, starts: readonly number[]): TextWord[] {
  const segments = [...segmenter.segment(text)].filter(({ segment }) => segment.trim() !== '');
  const words: { start: number; text: string; tokens: number[] }[] = [];
  segments.forEach(({ index, segment }, place) => {
    const end = segments[place + 1]?.index ?? Infinity;
    const tokens = starts.flatMap((start, token) => (start >= index && start < end ? [token] : []));
    const last = words.at(-1);
    if (tokens.length === 0 && last !== undefined) {
      last.text = text.slice(last.start, index + segment.length);
    } else {
      words.push({ start: index, text: segment, tokens });
    }
  });
  return words.map(({ text: word, tokens }) => ({ text: word, tokens }));
}

/**
 * The words of a text with their tokens as `encode` gives them; without special ones.
 */
export async function sourceWords(text: string, tokenizer: Tokenizer): Promise<TextWord[]> {
  const { offsets } = await tokenizer.encodeWithOffsets(text);
  return groupByWord(
    text,
    offsets.map(([start]) => visibleFrom(text, start)),
  );
}

/**
 * The words of an output with its tokens. A token may be a part of a character, so where each begins
 * follows from the texts of the tokens before it.
 */
export async function targetWords(
  text: string,
  tokens: readonly string[],
  tokenizer: Tokenizer,
): Promise<TextWord[]> {
  const ids = tokens.flatMap((token) => tokenizer.idOf(token) ?? []);
  if (ids.length < tokens.length)
    return tokens.map((token, index) => ({ text: token, tokens: [index] }));
  const before = await tokenizer.decodeBatch(ids.map((_id, index) => ids.slice(0, index)));
  return groupByWord(
    text,
    before.map((part) => visibleFrom(text, part.replace(/\ufffd+$/, '').length)),
  );
}

/** The first place from `start` on that is not white space. */
function visibleFrom(text: string, start: number): number {
  const rest = text.slice(start);
  return rest.trim() === '' ? -1 : start + rest.length - rest.trimStart().length;
}
