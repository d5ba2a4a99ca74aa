/** A {@link Translator} as the server uses it. */
import { splitText } from '../decode/splitText.js';
import { sourceLimit } from '../decode/positionLimit.js';
import type { TranslationHypothesis } from '../decode/translation.js';
import { Translator } from '../decode/translator.js';
import type { Device } from '../tensor/device.js';
import type {
  DetailedOptions,
  ServedAttention,
  ServedOptions,
  ServedTranslation,
  ServedTranslator,
} from './servedTranslator.js';
import { sourceWords, targetWords } from './words.js';

/**
 * Loads the model of a folder for the server.
 *
 * @param beam number of hypotheses that are followed; more are if more are asked for
 * @throws TorchError ERR_CHECKPOINT naming the file and the fault
 */
export async function loadServed(
  folder: string,
  device: Device,
  beam: number,
): Promise<ServedTranslator> {
  return new TranslatorAdapter(await Translator.load(folder, { device }), beam);
}

class TranslatorAdapter implements ServedTranslator {
  readonly #translator: Translator;
  readonly #beam: number;
  readonly #limit: number;

  constructor(translator: Translator, beam: number) {
    this.#translator = translator;
    this.#beam = beam;
    this.#limit = sourceLimit(translator.model);
  }

  async split(
    lines: readonly string[],
    { signal }: ServedOptions,
  ): Promise<readonly (readonly string[])[]> {
    if (this.#limit === Infinity) return lines.map((line) => [line]);
    const { tokenizer } = this.#translator;
    // The model's source is framed with bos and eos.
    const limit = this.#limit - 2;
    const encoded = await tokenizer.encodeBatch(lines, { signal });
    const parts: (readonly string[])[] = [];
    for (const [index, line] of lines.entries()) {
      const fits = (encoded[index] as number[]).length <= limit;
      signal.throwIfAborted();
      parts.push(fits ? [line] : await splitText(line, tokenizer, limit));
    }
    return parts;
  }

  async translate(texts: readonly string[], { signal }: ServedOptions): Promise<readonly string[]> {
    return this.#translator.translate(texts, { beam: this.#beam, signal });
  }

  async detailed(
    texts: readonly string[],
    { hypotheses: count, attention, signal }: DetailedOptions,
  ): Promise<readonly ServedTranslation[]> {
    const found = await this.#translator.translateDetailed(texts, {
      beam: Math.max(this.#beam, count),
      nBest: count,
      attention,
      signal,
    });
    return Promise.all(
      found.map(async ({ sourceTokens, hypotheses }, index) => {
        const [best] = hypotheses;
        // A text without tokens has none.
        if (best === undefined) return { hypotheses: [noTokens], attention: null };
        return {
          hypotheses: hypotheses.map(({ text, score, tokens }) => ({
            text,
            score,
            tokens: tokens.map(({ token, score: own }) => ({ text: token, score: own })),
          })),
          attention: await this.#attention(texts[index] as string, sourceTokens, best),
        };
      }),
    );
  }

  /** The weights by words as well; without those of bos and eos. */
  async #attention(
    text: string,
    framed: readonly string[],
    best: TranslationHypothesis,
  ): Promise<ServedAttention | null> {
    if (best.attention === null) return null;
    const { tokenizer } = this.#translator;
    const targetTokens = best.tokens.map(({ token }) => token);
    return {
      sourceTokens: framed.slice(1, -1),
      targetTokens,
      weights: best.attention.map((row) => row.slice(1, -1)),
      sourceWords: await sourceWords(text, tokenizer),
      targetWords: await targetWords(best.text, targetTokens, tokenizer),
    };
  }

  stream(text: string, { signal }: ServedOptions): AsyncIterable<string> {
    return this.#translator.translateStreaming(text, { beam: this.#beam, signal });
  }

  dispose(): void {
    this.#translator.dispose();
  }
}

const noTokens = { text: '', score: null, tokens: [] };
