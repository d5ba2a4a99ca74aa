import { tokenizeChinese } from './chineseTokenizer.js';
import { tokenizeInternational } from './internationalTokenizer.js';
import { tokenize13a } from './westernTokenizer.js';

/** The tokenizers of BLEU, see {@link BleuOptions}. */
export type BleuTokenizer = '13a' | 'zh' | 'char' | 'intl' | 'none';

/** The names of all {@link BleuTokenizer}s. */
export const bleuTokenizers: readonly BleuTokenizer[] = ['13a', 'zh', 'char', 'intl', 'none'];

/** What separates the words of a line with white space, without the line end. */
export function separatorOf(tokenizer: BleuTokenizer): (line: string) => string {
  switch (tokenizer) {
    case '13a':
      return tokenize13a;
    case 'zh':
      return tokenizeChinese;
    case 'intl':
      return tokenizeInternational;
    case 'char':
      return (line) => Array.from(line).join(' ');
    case 'none':
      return (line) => line;
  }
}

/**
 * The tokenizer that fits the language of some references: `'zh'` if most of their letters are Chinese, else
 * `'13a'`. Chinese has no spaces, so for `'13a'` a whole clause is one word, which is hardly ever right:
 * its BLEU says nothing. Japanese and Korean also get `'13a'`, as sacrebleu's own tokenizers for them need
 * dictionaries; use `'char'` for them.
 *
 * @param references texts, or lists of texts
 */
export function tokenizerFor(references: readonly (string | readonly string[])[]): BleuTokenizer {
  let chinese = 0;
  let letters = 0;
  for (const text of references.flat()) {
    // A kana shows that the text is Japanese.
    if (!/\p{Script=Hiragana}|\p{Script=Katakana}/u.test(text)) {
      chinese += text.match(/\p{Script=Han}/gu)?.length ?? 0;
    }
    letters += text.match(/\p{L}/gu)?.length ?? 0;
  }
  return 2 * chinese > letters ? 'zh' : '13a';
}
