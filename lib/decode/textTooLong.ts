/** The error for texts that a model does not accept. */
import { maxTextLength } from '../data/text.js';

/**
 * Thrown for a text that exceeds the model's position table, or has more than 100,000 characters and is
 * not tokenized.
 */
export class TextTooLongError extends RangeError {
  /** Index of the text, from 0. */
  readonly index: number;
  /** Its number of tokens, including bos and eos; null if it was not tokenized. */
  readonly tokens: number | null;
  /** Maximum number of tokens of the position table. */
  readonly limit: number;

  /**
   * @param index index of the text, from 0
   * @param tokens its number of tokens, including bos and eos; null if unknown
   * @param limit maximum number of tokens of the position table
   * @param name what the message calls the text
   */
  constructor(
    index: number,
    tokens: number | null,
    limit: number,
    name = `Translator.translate: texts[${index}]`,
  ) {
    const size =
      tokens === null
        ? `more than ${maxTextLength.toLocaleString('en-US')} characters`
        : `${tokens} tokens (with bos and eos), the model's position table ${limit}`;
    super(`${name} has ${size}; split the text`);
    this.name = 'TextTooLongError';
    this.index = index;
    this.tokens = tokens;
    this.limit = limit;
  }
}
