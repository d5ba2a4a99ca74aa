/** The output of a search in pieces, as it becomes certain. */
import type { Tokenizer } from '../data/tokenizers/tokenizer.js';

/**
 * Starts a search and yields its output in pieces, which together are the whole output. Leaving the loop
 * early aborts the search.
 *
 * @param given the caller's signal
 * @param search decodes one text; calls `onTokens` with all ids that are certain by now, and returns all
 */
export async function* streamText(
  tokenizer: Tokenizer,
  given: AbortSignal | undefined,
  search: (
    signal: AbortSignal,
    onTokens: (ids: readonly number[]) => void,
  ) => Promise<readonly number[]>,
): AsyncGenerator<string, void, undefined> {
  const stop = new AbortController();
  const signal = given === undefined ? stop.signal : AbortSignal.any([given, stop.signal]);
  let ids: readonly number[] = [];
  let wake = (): void => undefined;
  let isDone = false;
  const searching = search(signal, (certain) => {
    ids = certain;
    wake();
  }).finally(() => {
    isDone = true;
    wake();
  });
  // It is awaited below; an abort in the meantime must not count as unhandled.
  searching.catch(() => undefined);
  let written = '';
  try {
    while (!isDone) {
      const seen = ids;
      if (seen.length > 0) {
        const certain = wholeCharacters(await tokenizer.decode([...seen]));
        // A token may change the text before it; then the pieces wait for what becomes of it.
        if (certain.startsWith(written) && certain.length > written.length) {
          yield certain.slice(written.length);
          written = certain;
        }
      }
      if (seen === ids && !isDone) await new Promise<void>((resolve) => (wake = resolve));
    }
    const whole = await tokenizer.decode([...(await searching)]);
    const rest = whole.startsWith(written) ? whole.slice(written.length) : '';
    if (rest !== '') yield rest;
  } finally {
    stop.abort();
  }
}

/** A text without the incomplete character at its end, which the next token completes. */
function wholeCharacters(text: string): string {
  return text.replace(/\uFFFD+$/u, '');
}
