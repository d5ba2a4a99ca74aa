type JsonObject = Record<string, unknown>;

/**
 * Notices characters of a text that a tokenizer does not know. One with an unknown token gives that;
 * a BPE tokenizer without one, and without tokens for all bytes, leaves them out without a trace.
 */
export class UnknownCharacters {
  /** The id of the unknown token; null without one. */
  readonly #id: number | null;
  /** Whether characters may be missing from the ids. */
  readonly #drops: boolean;

  /**
   * @param json of the tokenizer
   * @param idOf the id of a token, null where there is none
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

/** Whether bytes, which all characters consist of, are tokens. */
function hasAllBytes(file: JsonObject, model: JsonObject): boolean {
  const vocabulary = (model['vocab'] ?? {}) as JsonObject;
  if (model['byte_fallback'] === true && Object.hasOwn(vocabulary, '<0x00>')) return true;
  if (!JSON.stringify(file['pre_tokenizer'] ?? null).includes('"ByteLevel"')) return false;
  return Object.keys(vocabulary).filter((token) => [...token].length === 1).length >= 256;
}

/** White space, and marks that a normalizer strips from letters, are rightly left out. */
function hasCharacterOutside(text: string, offsets: readonly number[][]): boolean {
  const characters = [...text];
  const covered = new Uint8Array(characters.length);
  for (const [start = 0, end = 0] of offsets) covered.fill(1, start, end);
  return characters.some(
    (character, index) => covered[index] === 0 && !/[\s\p{M}\p{C}]/u.test(character),
  );
}
