/** A {@link Translator} as the server uses it. */
import { splitText } from '../decode/splitText.js';
import { sourceLimit } from '../decode/positionLimit.js';
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
 * @throws TorchError ERR_CHECKPOINT naming the file and the fault
 */
export async function loadServed(folder: string, device: Device): Promise<ServedTranslator> {
  return new TranslatorAdapter(await Translator.load(folder, { device }));
}

/** A hypothesis as a translator with a search returns it. */
interface FoundHypothesis {
  readonly text: string;
  readonly score: number;
  readonly tokens: readonly { readonly token: string; readonly score: number }[];
  /** For each of `tokens`, a weight for each source token, bos and eos included. */
  readonly attention: readonly (readonly number[])[] | null;
}

/** The methods of a translator that has more than greedy decoding. */
interface SearchingTranslator {
  translateDetailed(
    texts: readonly string[],
    options: { beam: number; nBest: number; attention: boolean; signal: AbortSignal },
  ): Promise<
    readonly {
      readonly sourceTokens: readonly string[];
      readonly hypotheses: readonly FoundHypothesis[];
    }[]
  >;
  translateStreaming(text: string, options: { signal: AbortSignal }): AsyncIterable<string>;
}

function searching(translator: object): SearchingTranslator | null {
  const methods = ['translateDetailed', 'translateStreaming'];
  return methods.every((method) => method in translator)
    ? (translator as SearchingTranslator)
    : null;
}

class TranslatorAdapter implements ServedTranslator {
  readonly #translator: Translator;
  readonly #limit: number;

  constructor(translator: Translator) {
    this.#translator = translator;
    this.#limit = sourceLimit(translator.model);
  }

  async split(line: string, { signal }: ServedOptions): Promise<readonly string[]> {
    signal.throwIfAborted();
    if (this.#limit === Infinity) return [line];
    // Each part is framed with bos and eos.
    return splitText(line, this.#translator.tokenizer, this.#limit - 2);
  }

  async translate(texts: readonly string[], { signal }: ServedOptions): Promise<readonly string[]> {
    return this.#translator.translate(texts, { signal });
  }

  async detailed(
    texts: readonly string[],
    { hypotheses: count, attention, signal }: DetailedOptions,
  ): Promise<readonly ServedTranslation[]> {
    const search = searching(this.#translator);
    if (search === null) {
      const outputs = await this.#translator.translate(texts, { signal });
      return outputs.map((text) => ({ hypotheses: [withoutScore(text)], attention: null }));
    }
    const options = { beam: count, nBest: count, attention, signal };
    const found = await search.translateDetailed(texts, options);
    return Promise.all(
      found.map(async ({ sourceTokens, hypotheses }, index) => {
        const [best] = hypotheses;
        // A text without tokens has none.
        if (best === undefined) return { hypotheses: [withoutScore('')], attention: null };
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
    best: FoundHypothesis,
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

  async *stream(text: string, { signal }: ServedOptions): AsyncGenerator<string> {
    const search = searching(this.#translator);
    if (search !== null) {
      yield* search.translateStreaming(text, { signal });
      return;
    }
    const [output] = await this.#translator.translate([text], { signal });
    yield output as string;
  }

  dispose(): void {
    this.#translator.dispose();
  }
}

function withoutScore(text: string) {
  return { text, score: null, tokens: [] };
}
