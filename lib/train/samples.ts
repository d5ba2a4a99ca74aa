/** Sample translations shown during training. */
import { TextTooLongError } from '../decode/textTooLong.js';
import type { Translator } from '../decode/translator.js';

/** Twice the tokens of the text plus ten: bos and eos of the source count here. */
const maxLength = { ratio: 2, plus: 6 };

/** Maximum number of characters shown of a text. */
const shown = 120;

/**
 * Translates each text and reports it in one line. A text that cannot be translated is also reported,
 * rather than ending the training.
 *
 * A barely trained model repeats itself up to the maximum length, so outputs are limited to twice the
 * tokens of the text plus ten.
 */
export async function showSamples(
  translator: Translator,
  texts: readonly string[],
  signal: AbortSignal | undefined,
  say: (line: string) => void,
): Promise<void> {
  for (const text of texts) {
    try {
      const output = await translator.translate(text, { maxLength, signal });
      say(`  ${shortened(text)} → ${shortened(output)}`);
    } catch (error) {
      if (signal?.aborted === true) return;
      say(`  ${shortened(text)}: skipped, ${reasonOf(error)}`);
    }
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof TextTooLongError)) return (error as Error).message;
  return error.tokens === null
    ? 'it has too many characters'
    : `it has ${error.tokens} tokens (with bos and eos), but the model's limit is ${error.limit}`;
}

/** The output of a barely trained model may contain anything, even terminal control codes. */
function shortened(text: string): string {
  const characters = [...text.slice(0, 2 * shown + 2).replace(/\p{Cc}+/gu, ' ')];
  return characters.length > shown
    ? `${characters.slice(0, shown).join('')}…`
    : characters.join('');
}
