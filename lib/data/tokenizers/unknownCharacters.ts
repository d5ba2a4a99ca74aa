type JsonObject = Record<string, unknown>;

/**
 * Detects characters of a text that a tokenizer does not know. A tokenizer with an unknown token
 * produces it; a BPE tokenizer with neither that nor tokens for all bytes silently drops them.
 */
export class UnknownCharacters {
  /** The id of the unknown token, or null if there is none. */
  readonly #id: number | null;
  /** Whether characters may be missing from the ids. */
  readonly #drops: boolean;

  /**
   * @param json the `tokenizer.json`
   * @param idOf returns the id of a token, or null if it has none
   */
  constructor(json: string, idOf: (token: string) => number | null) {
    const file = JSON.parse(json) as JsonObject;
    const model = file['model'] as JsonObject;
    const token = model['unk_token'];
    const id = typeof token === 'string' ? idOf(token) : model['unk_id'];
    this.#id = typeof id === 'number' ? id : null;
    const isBpe = model['type'] === 'BPE' || (model['type'] === undefined && 'merges' in model);
    this.#drops = isBpe && this.#id === null && !hasAllBytes(file, model);
  }

  /** @param offsets of the tokens, in code points */
  areIn(text: string, ids: readonly number[], offsets: () => readonly number[][]): boolean {
    if (this.#id !== null && ids.includes(this.#id)) return true;
    return this.#drops && hasCharacterOutside(text, offsets());
  }
}

/** Whether all bytes are tokens, so that any character can be encoded. */
function hasAllBytes(file: JsonObject, model: JsonObject): boolean {
  const vocabulary = (model['vocab'] ?? {}) as JsonObject;
  if (model['byte_fallback'] === true && Object.hasOwn(vocabulary, '<0x00>')) return true;
  if (!JSON.stringify(file['pre_tokenizer'] ?? null).includes('"ByteLevel"')) return false;
  return Object.keys(vocabulary).filter((token) => [...token].length === 1).length >= 256;
}

/** Ignores white space, and marks that a normalizer strips from letters. */
function hasCharacterOutside(text: string, offsets: readonly number[][]): boolean {
  const characters = [...text];
  const covered = new Uint8Array(characters.length);
  for (const [start = 0, end = 0] of offsets) covered.fill(1, start, end);
  return characters.some(
    (character, index) => covered[index] === 0 && !/[\s\p{M}\p{C}]/u.test(character),
  );
}
