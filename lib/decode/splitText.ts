import type { Tokenizer } from '../data/tokenizers/tokenizer.js';

/**
 * Splits a text into parts of at most `limit` tokens: after the end of a sentence, else at white space,
 * else between two tokens.
 *
 * @throws RangeError if a single character has more than `limit` tokens
 */
export async function splitText(
  text: string,
  tokenizer: Tokenizer,
  limit: number,
): Promise<string[]> {
  const parts: string[] = [];
  let rest = text.trim();
  while (rest !== '') {
    const end = await endOfPart(rest, tokenizer, limit);
    parts.push(rest.slice(0, end).trimEnd());
    rest = rest.slice(end).trimStart();
  }
  return parts;
}

async function endOfPart(text: string, tokenizer: Tokenizer, limit: number): Promise<number> {
  // No more of the text than needed: it is tokenized again for every part.
  let window = 8 * limit;
  for (;;) {
    const seen = text.slice(0, window);
    const { offsets } = await tokenizer.encodeWithOffsets(seen);
    if (offsets.length <= limit) {
      if (seen.length === text.length) return text.length;
      window *= 2;
      continue;
    }
    // Without the text that follows, a part may have different tokens, and more of them.
    for (let room = limit; room > 0; room--) {
      const end = lastCut(seen.slice(0, (offsets[room - 1] as [number, number])[1]));
      if (end > 0 && (await tokenizer.encode(seen.slice(0, end).trimEnd())).length <= limit) {
        return end;
      }
    }
    throw new RangeError(`a text cannot be split into parts of ${limit} tokens`);
  }
}

/** The best position to split a text; its end if there is no other. */
function lastCut(text: string): number {
  const sentences = [...text.matchAll(/[.!?…]["'”’»)\]]*(?=\s)|[。！？；]["'”’»）」』]*/gu)];
  const last = sentences.at(-1);
  if (last !== undefined) return last.index + last[0].length;
  const blank = /\s+(?=\S*$)/u.exec(text);
  return blank === null || blank.index === 0 ? text.length : blank.index;
}
