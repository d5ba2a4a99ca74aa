/** Translations that are shown while a model is trained. */
import { maxTextLength } from '../data/text.js';
import { targetLimit } from '../decode/positionLimit.js';
import { TextTooLongError, type Translator } from '../decode/translator.js';

/** Characters of a text that are shown. */
const shown = 120;

/**
 * Translates each text and reports it in one line. A text that cannot be translated is reported, too:
 * it is worth no training.
 *
 * A young model repeats itself up to the longest output, so outputs have at most twice the tokens of
 * the text and ten more.
 */
export async function showSamples(
  translator: Translator,
  texts: readonly string[],
  signal: AbortSignal | undefined,
  say: (line: string) => void,
): Promise<void> {
  for (const text of texts) {
    try {
      const tokens = text.length > maxTextLength ? [] : await translator.tokenizer.encode(text);
      const maxLength = Math.min(2 * tokens.length + 10, targetLimit(translator.model));
      const [output = ''] = await translator.translate([text], { maxLength, signal });
      say(`  ${shortened(text)} → ${shortened(output)}`);
    } catch (error) {
      if (signal?.aborted === true) return;
      say(`  ${shortened(text)}: left out, ${reasonOf(error)}`);
    }
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof TextTooLongError)) return (error as Error).message;
  return error.tokens === null
    ? 'it has too many characters'
    : `it has ${error.tokens} tokens (with bos and eos), the model takes ${error.limit}`;
}

/** What a model writes early on may hold anything, control codes of the terminal too. */
function shortened(text: string): string {
  const characters = [...text.slice(0, 2 * shown + 2).replace(/\p{Cc}+/gu, ' ')];
  return characters.length > shown
    ? `${characters.slice(0, shown).join('')}…`
    : characters.join('');
}
