/** What counts as a text to translate. */

/**
 * The most characters (UTF-16 units) of a text that is tokenized: far more than a sentence has. A
 * tokenizer needs a kilobyte of memory for each, and a file without line ends is one line.
 */
export const maxTextLength = 100_000;

/**
 * Whether nothing of a text would be seen: white space, control codes, and characters of width zero
 * such as U+200B and U+FEFF.
 */
export function isBlank(text: string): boolean {
  return /^[\s\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]*$/u.test(text);
}

/** The text without a byte order mark, which joined files have in the middle. */
export function withoutMark(text: string): string {
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}
