/**
 * Words as Python's `str.split` finds them, on which all scores of sacrebleu rest. Unlike `\s` of JavaScript,
 * white space has U+001C to U+001F and U+0085, and not U+FEFF.
 */
const blank = String.raw`\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000`;
const word = new RegExp(`[^${blank}]+`, 'g');
const isBlank = new RegExp(`^[${blank}]$`);

/** The words of a text: what is between white space. */
export function splitWords(text: string): string[] {
  return text.match(word) ?? [];
}

/** The text without the white space at its end, as Python's `str.rstrip`. */
export function stripEnd(text: string): string {
  let end = text.length;
  while (end > 0 && isBlank.test(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

/** The text without the white space at its start, as Python's `str.lstrip`. */
export function stripStart(text: string): string {
  let start = 0;
  while (start < text.length && isBlank.test(text.charAt(start))) start++;
  return text.slice(start);
}
