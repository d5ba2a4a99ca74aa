import {
  checkArray,
  checkFunction,
  checkInteger,
  checkOptions,
  checkSignal,
  describe,
  isIterable,
} from '../../runtime/arguments.js';
import { findMerges } from './bpeMerges.js';
import { nativeTokenizers } from './nativeTokenizers.js';

/** The progress of the training of a tokenizer. */
export interface TokenizerProgress {
  /** Reading the texts, or merging pairs of tokens. */
  readonly part: 'texts' | 'merges';
  /** Number of texts read, or of tokens in the vocabulary. */
  readonly done: number;
  /** Their total number, or null if the number of texts is not known. */
  readonly total: number | null;
}

/** Options of {@link trainBpe}. */
export interface TrainBpeOptions {
  /**
   * Number of tokens in the vocabulary: special tokens, 256 bytes, then merges. Default 8000. There
   * are fewer if the texts run out of frequent pairs.
   */
  vocabSize?: number | undefined;
  /** How often a pair must occur to become a token. Default 2. */
  minFrequency?: number | undefined;
  /** Tokens that texts never produce, with ids from 0. Default `['<pad>', '<bos>', '<eos>']`. */
  specialTokens?: readonly string[] | undefined;
  /** Aborts the training. */
  signal?: AbortSignal | undefined;
  /** Called regularly, at most a hundred times a second. */
  onProgress?: ((progress: TokenizerProgress) => void) | undefined;
}

/** Options of {@link trainCharacters}. */
export interface TrainCharactersOptions {
  /**
   * Maximum number of tokens in the vocabulary: special tokens, 256 bytes, then the most frequent
   * characters. Default: all characters of the texts.
   */
  vocabSize?: number | undefined;
  /** Tokens that texts never produce, with ids from 0. Default `['<pad>', '<bos>', '<eos>']`. */
  specialTokens?: readonly string[] | undefined;
  /** Aborts the training. */
  signal?: AbortSignal | undefined;
  /** Called regularly, at most a hundred times a second. */
  onProgress?: ((progress: TokenizerProgress) => void) | undefined;
}

/** Pad, bos and eos: names that `findSpecialIds` finds, with pad as id 0 as in the seed. */
export const defaultSpecialTokens: readonly string[] = ['<pad>', '<bos>', '<eos>'];

/** Texts, for example sentences; the order does not matter. */
export type Texts = Iterable<string> | AsyncIterable<string>;

/**
 * Trains a byte-level BPE tokenizer and returns its `tokenizer.json`, which Hugging Face's
 * `tokenizers` loads with the same ids in any programming language.
 *
 * Words are split as in GPT-2 and spelled in bytes, so text in any script, including emoji and line
 * ends, can be encoded and decodes to exactly itself; no character is unknown. Merges do not depend
 * on the order of the texts: of equally frequent pairs, the one with lower ids is merged first.
 *
 * @throws TypeError, RangeError if `texts` is not an iterable of strings, and for invalid options,
 *   such as a vocabSize too small for the special tokens and the 256 bytes
 */
export async function trainBpe(texts: Texts, options?: TrainBpeOptions): Promise<string> {
  const owner = 'trainBpe';
  checkTexts(owner, texts);
  checkOptions(owner, options, [
    'vocabSize',
    'minFrequency',
    'specialTokens',
    'signal',
    'onProgress',
  ]);
  const { vocabSize = 8000, minFrequency = 2, signal, onProgress } = options ?? {};
  checkSignal(owner, 'signal', signal);
  if (onProgress !== undefined) checkFunction(owner, 'onProgress', onProgress);
  const special = checkSpecialTokens(owner, options?.specialTokens);
  const bytes = inCodePointOrder(nativeTokenizers().byteLevelAlphabet());
  checkInteger(owner, 'minFrequency', minFrequency, 1);
  checkSize(owner, vocabSize, special.length + bytes.length);

  const pause = pauser(signal, onProgress);
  const splitter = nativeTokenizers().byteLevelPreTokenizer(false, true);
  const wordCounts = new Map<string, number>();
  await forEachText(owner, texts, pause, (text) => {
    for (const [word] of splitter.preTokenizeString(text)) {
      wordCounts.set(word, (wordCounts.get(word) ?? 0) + 1);
    }
  });
  const initial = [...new Set([...special, ...bytes])];
  const found = await findMerges(wordCounts, { initial, vocabSize, minFrequency }, (done) =>
    pause({ part: 'merges', done, total: vocabSize }),
  );
  const byteLevel = {
    type: 'ByteLevel',
    add_prefix_space: false,
    trim_offsets: true,
    use_regex: true,
  };
  return tokenizerJson({
    special,
    tokens: found.tokens,
    merges: found.merges,
    byteFallback: false,
    preTokenizer: byteLevel,
    decoder: byteLevel,
  });
}

/**
 * Makes a tokenizer of single characters and returns its `tokenizer.json`. Characters that are not
 * in the texts, or too rare for `vocabSize`, are spelled in bytes, so any text decodes to exactly
 * itself, as with {@link trainBpe}.
 *
 * @throws TypeError, RangeError if `texts` is not an iterable of strings, and for invalid options,
 *   such as a vocabSize too small for the special tokens and the 256 bytes
 */
export async function trainCharacters(
  texts: Texts,
  options?: TrainCharactersOptions,
): Promise<string> {
  const owner = 'trainCharacters';
  checkTexts(owner, texts);
  checkOptions(owner, options, ['vocabSize', 'specialTokens', 'signal', 'onProgress']);
  const { vocabSize, signal, onProgress } = options ?? {};
  checkSignal(owner, 'signal', signal);
  if (onProgress !== undefined) checkFunction(owner, 'onProgress', onProgress);
  const special = checkSpecialTokens(owner, options?.specialTokens);
  const bytes = Array.from({ length: 256 }, (_, byte) => {
    return `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`;
  });
  if (vocabSize !== undefined) checkSize(owner, vocabSize, special.length + bytes.length);

  const counts = new Map<string, number>();
  await forEachText(owner, texts, pauser(signal, onProgress), (text) => {
    for (const letter of text) {
      // A lone surrogate cannot be encoded as UTF-8, which replaces it with U+FFFD.
      const character = /^[\ud800-\udfff]$/.test(letter) ? '\ufffd' : letter;
      counts.set(character, (counts.get(character) ?? 0) + 1);
    }
  });
  const room = (vocabSize ?? Infinity) - special.length - bytes.length;
  const frequent = [...counts]
    .sort(([a, countOfA], [b, countOfB]) => countOfB - countOfA || byCodePoint(a, b))
    .slice(0, room)
    .map(([character]) => character);
  return tokenizerJson({
    special,
    tokens: [...new Set([...special, ...bytes, ...inCodePointOrder(frequent)])],
    merges: [],
    byteFallback: true,
    preTokenizer: null,
    decoder: { type: 'Sequence', decoders: [{ type: 'ByteFallback' }, { type: 'Fuse' }] },
  });
}

function checkSpecialTokens(owner: string, given: readonly string[] | undefined): string[] {
  if (given !== undefined) checkArray(owner, 'specialTokens', given, 'an array of strings');
  const tokens = [...(given ?? defaultSpecialTokens)];
  tokens.forEach((token, index) => {
    if (typeof token !== 'string' || token === '') {
      throw new TypeError(
        `${owner}: specialTokens[${index}] must be a non-empty string, got ${describe(token)}`,
      );
    }
    if (tokens.indexOf(token) !== index) {
      throw new TypeError(`${owner}: specialTokens has ${describe(token)} twice`);
    }
  });
  return tokens;
}

function checkSize(owner: string, vocabSize: number, minimum: number): void {
  checkInteger(owner, 'vocabSize', vocabSize, 1);
  if (vocabSize < minimum) {
    throw new RangeError(
      `${owner}: vocabSize must be at least ${minimum} (special tokens and 256 bytes), got ${vocabSize}`,
    );
  }
}

async function forEachText(
  owner: string,
  texts: Texts,
  pause: Pause,
  take: (text: string) => void,
): Promise<void> {
  const total = Array.isArray(texts) ? texts.length : null;
  let index = 0;
  for await (const text of texts) {
    if (typeof text !== 'string') {
      throw new TypeError(`${owner}: text ${index} must be a string, got ${describe(text)}`);
    }
    take(text);
    if (++index % 64 === 0) await pause({ part: 'texts', done: index, total });
  }
}

type Pause = (progress: TokenizerProgress) => Promise<void>;

/** Yields to the event loop every 10 ms, so that a server stays responsive. */
function pauser(signal: AbortSignal | undefined, onProgress: TrainBpeOptions['onProgress']): Pause {
  let last = performance.now();
  signal?.throwIfAborted();
  return async (progress) => {
    if (performance.now() - last < 10) return;
    onProgress?.(progress);
    await new Promise((resolve) => setImmediate(resolve));
    signal?.throwIfAborted();
    last = performance.now();
  };
}

function byCodePoint(a: string, b: string): number {
  return (a.codePointAt(0) as number) - (b.codePointAt(0) as number);
}

function inCodePointOrder(characters: readonly string[]): string[] {
  return [...characters].sort(byCodePoint);
}

interface TokenizerParts {
  special: readonly string[];
  /** All tokens; the index is the id. */
  tokens: readonly string[];
  merges: readonly (readonly [string, string])[];
  byteFallback: boolean;
  preTokenizer: object | null;
  decoder: object;
}

function tokenizerJson(parts: TokenizerParts): string {
  const addedTokens = parts.special.map((content, id) => ({
    id,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  }));
  const model = {
    type: 'BPE',
    dropout: null,
    unk_token: null,
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    fuse_unk: false,
    byte_fallback: parts.byteFallback,
    ignore_merges: false,
    vocab: Object.fromEntries(parts.tokens.map((token, id) => [token, id])),
    merges: parts.merges,
  };
  const tokenizer = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: addedTokens,
    normalizer: null,
    pre_tokenizer: parts.preTokenizer,
    post_processor: null,
    decoder: parts.decoder,
    model,
  };
  return `${JSON.stringify(tokenizer, null, 2)}\n`;
}

/** Checks a sync or async iterable of texts. @throws TypeError with the fix */
function checkTexts(owner: string, value: unknown): void {
  if (typeof value === 'string') {
    // Iterating over it would yield its characters.
    throw new TypeError(
      `${owner}: texts must be an iterable of texts, got ${describe(value)}; for a single text, pass [text]`,
    );
  }
  if (isIterable(value)) return;
  throw new TypeError(
    `${owner}: texts must be an iterable of strings, such as an array, got ${describe(value)}`,
  );
}
