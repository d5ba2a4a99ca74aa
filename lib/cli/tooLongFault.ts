import { maxTextLength } from '../data/text.js';
import type { TextTooLongError } from '../decode/textTooLong.js';
import type { TooLongAction } from '../decode/translation.js';

/**
 * A text that is too long, with the flag that helps.
 *
 * @param name what messages call the text
 * @param actions the values of --on-too-long that go on
 */
export function tooLongFault(
  name: string,
  error: TextTooLongError,
  actions: readonly TooLongAction[],
): RangeError {
  const { tokens, limit } = error;
  const size =
    tokens === null
      ? `more than ${maxTextLength.toLocaleString('en-US')} characters`
      : `${tokens} tokens (with bos and eos), but the model accepts ${limit}`;
  // Such a text is not even split.
  const useful = tokens === null ? actions.filter((action) => action !== 'split') : actions;
  return new RangeError(
    `${name} has ${size}; split it, or use ${useful.map((action) => `--on-too-long ${action}`).join(' or ')}`,
    { cause: error },
  );
}
