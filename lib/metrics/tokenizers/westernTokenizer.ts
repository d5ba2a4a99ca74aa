/** The rules of mteval-v13a for texts in Latin script, which the tokenizers `13a` and `zh` share. */
export function separateWestern(text: string): string {
  return (
    text
      // All ASCII punctuation and symbols except the apostrophe, the comma, the hyphen and the period.
      .replace(/([{-~\[-` -&(-+:-@/])/gu, ' $1 ')
      // Periods and commas, unless a digit is before them, then unless one follows.
      .replace(/([^0-9])([.,])/gu, '$1 $2 ')
      .replace(/([.,])([^0-9])/gu, ' $1 $2')
      // Hyphens after digits.
      .replace(/([0-9])(-)/gu, '$1 $2 ')
  );
}

/** The tokenizer `13a`: WMT's standard, equal to mteval-v13a. */
export function tokenize13a(line: string): string {
  let text = line.replaceAll('<skipped>', '').replaceAll('-\n', '').replaceAll('\n', ' ');
  if (text.includes('&')) {
    text = text
      .replaceAll('&quot;', '"')
      .replaceAll('&amp;', '&')
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>');
  }
  return separateWestern(` ${text} `);
}
