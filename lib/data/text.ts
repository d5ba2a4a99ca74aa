/** What counts as a text to translate. */

/**
 * Maximum number of characters (UTF-16 units) in a text to tokenize, far more than a sentence has.
 * A tokenizer needs a kilobyte of memory for each, and a file without line ends is one line.
 */
export const maxTextLength = 100_000;

/**
 * Whether a text has no visible characters: only white space, control codes, and zero-width
 * characters such as U+200B and U+FEFF.
 */
export function isBlank(text: string): boolean {
  return /^[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]*$/u.test(text);
}

/** The text without a byte order mark, which concatenated files may have in the middle. */
export function withoutMark(text: string): string {
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}
