/** A {@link Translator} as the server uses it. */
import { splitText } from '../decode/splitText.js';
import { sourceLimit } from '../decode/positionLimit.js';
import { Translator } from '../decode/translator.js';
import type { Device } from '../tensor/device.js';
import type {
  DetailedOptions,
  ServedOptions,
  ServedTranslation,
  ServedTranslator,
} from './servedTranslator.js';

/**
 * Loads the model of a folder for the server.
 *
 * @throws TorchError ERR_CHECKPOINT naming the file and the fault
 */
export async function loadServed(folder: string, device: Device): Promise<ServedTranslator> {
  return new TranslatorAdapter(await Translator.load(folder, { device }));
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

  /** The decoder gives one hypothesis, without scores and attention. */
  async detailed(
    texts: readonly string[],
    { signal }: DetailedOptions,
  ): Promise<readonly ServedTranslation[]> {
    const outputs = await this.#translator.translate(texts, { signal });
    return outputs.map((text) => ({
      hypotheses: [{ text, score: null, tokens: [] }],
      attention: null,
    }));
  }

  /** The decoder gives the whole translation at once. */
  async *stream(text: string, { signal }: ServedOptions): AsyncGenerator<string> {
    const [output] = await this.#translator.translate([text], { signal });
    yield output as string;
  }

  dispose(): void {
    this.#translator.dispose();
  }
}
