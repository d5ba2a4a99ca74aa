import { stripEnd, stripStart } from '../whiteSpace.js';
import { separateWestern } from './westernTokenizer.js';

/**
 * What sacrebleu's tokenizer `zh` takes for Chinese. Two of its ranges are not those that its source names:
 * it writes U+20000 to U+2A6D6 (extension B) and U+2F800 to U+2FA1D with escapes of four digits, so that
 * Python compares with U+2000 and U+2A6D, and with U+2F80 and U+2FA1. The scores of everyone depend on it:
 * quotation marks such as U+201C are words of their own, and characters of extension B are not.
 */
const chinese = new RegExp(
  '([' +
    [
      String.raw`\u3400-\u4db5\u4e00-\u9fbb\uf900-\ufa2d\ufa30-\ufa6a\ufa70-\ufad9`,
      String.raw`\u2001-\u2a6d\u2f81-\u2fa1`,
      // Full-width forms, radicals, punctuation, strokes, Kangxi radicals, description characters.
      String.raw`\uff00-\uffef\u2e80-\u2eff\u3000-\u303f\u31c0-\u31ef\u2f00-\u2fdf\u2ff0-\u2fff`,
      // Bopomofo, vertical forms, enclosed and compatibility characters.
      String.raw`\u3100-\u312f\u31a0-\u31bf\ufe10-\ufe1f\ufe30-\ufe4f\u3200-\u33ff`,
    ].join('') +
    '])',
  'gu',
);

/** The tokenizer `zh`: each Chinese character is a word; the rest is tokenized like `13a`. */
export function tokenizeChinese(line: string): string {
  return separateWestern(stripStart(stripEnd(line)).replace(chinese, ' $1 '));
}
