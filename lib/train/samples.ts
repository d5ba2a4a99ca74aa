/** Sample translations shown during training. */
import { TextTooLongError } from '../decode/textTooLong.js';
import type { Translator } from '../decode/translator.js';
import { examineModel } from '../decode/native/decodableModel.js';
import type { SampleTranslation } from './run/history.js';

/** Twice the tokens of the text plus ten: bos and eos of the source count here. */
export const maxLength = { ratio: 2, plus: 6 };

/** Maximum number of characters shown of a text. */
const shown = 120;

/** A text to translate at each validation. */
export type SampleText =
  | string
  | {
      /** The text to translate. */
      readonly source: string;
      /** The expected translation, which is shown beside the model's. */
      readonly reference: string;
    };

/**
 * Translates each text and reports it in one line. A text that cannot be translated is also reported,
 * rather than ending the training.
 *
 * A barely trained model repeats itself up to the maximum length, so outputs are limited to twice the
 * tokens of the text plus ten.
 *
 * @returns null if the signal stopped it
 */
export async function translateSamples(
  translator: Translator,
  texts: readonly SampleText[],
  signal: AbortSignal | undefined,
  say: (line: string) => void,
): Promise<SampleTranslation[] | null> {
  const done: SampleTranslation[] = [];
  for (const text of texts) {
    const [source, reference] =
      typeof text === 'string' ? [text, null] : [text.source, text.reference];
    try {
      const sample = await translated(translator, source, signal);
      say(`  ${shortened(source)} → ${shortened(sample.translation)}`);
      done.push({ ...sample, reference });
    } catch (error) {
      if (signal?.aborted === true) return null;
      say(`  ${shortened(source)}: skipped, ${reasonOf(error)}`);
    }
  }
  return done;
}

async function translated(
  translator: Translator,
  source: string,
  signal: AbortSignal | undefined,
): Promise<Omit<SampleTranslation, 'reference'>> {
  if (typeof examineModel('Trainer.fit', translator.model) === 'string') {
    const translation = await translator.translate(source, { maxLength, signal });
    return { source, translation, attention: null };
  }
  const options = { maxLength, signal, attention: true } as const;
  const [detailed] = await translator.translateDetailed([source], options);
  const best = detailed?.hypotheses[0];
  const translation = detailed?.text ?? '';
  if (detailed === undefined || best === undefined || best.attention === null) {
    return { source, translation, attention: null };
  }
  const { sourceTokens } = detailed;
  const targetTokens = best.tokens.map(({ token }) => token);
  return {
    source,
    translation,
    attention: { sourceTokens, targetTokens, weights: best.attention },
  };
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
