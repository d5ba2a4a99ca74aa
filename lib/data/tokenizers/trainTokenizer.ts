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

/** How far the training of a tokenizer has come. */
export interface TokenizerProgress {
  /** Going through the texts, or merging pairs of tokens. */
  readonly part: 'texts' | 'merges';
  /** Texts seen, or tokens in the vocabulary. */
  readonly done: number;
  /** Of how many: null for texts whose number is not known. */
  readonly total: number | null;
}

/** Options of {@link trainBpe}. */
export interface TrainBpeOptions {
  /**
   * Tokens in the vocabulary: special tokens, 256 bytes, then merges. Default 8000. Fewer come out
   * when the texts run out of frequent pairs.
   */
  vocabSize?: number | undefined;
  /** How often a pair must occur to become a token. Default 2. */
  minFrequency?: number | undefined;
  /** Tokens that text never gives, with ids from 0. Default `['<pad>', '<bos>', '<eos>']`. */
  specialTokens?: readonly string[] | undefined;
  /** Stops the work. */
  signal?: AbortSignal | undefined;
  /** Called now and then, not more than a hundred times a second. */
  onProgress?: ((progress: TokenizerProgress) => void) | undefined;
}

/** Options of {@link trainCharacters}. */
export interface TrainCharactersOptions {
  /**
   * The most tokens in the vocabulary: special tokens, 256 bytes, then the most frequent
   * characters. Default: all characters of the texts.
   */
  vocabSize?: number | undefined;
  /** Tokens that text never gives, with ids from 0. Default `['<pad>', '<bos>', '<eos>']`. */
  specialTokens?: readonly string[] | undefined;
  /** Stops the work. */
  signal?: AbortSignal | undefined;
  /** Called now and then, not more than a hundred times a second. */
  onProgress?: ((progress: TokenizerProgress) => void) | undefined;
}

/** Pad, bos and eos: the names that `findSpecialIds` finds, with pad 0 as in the seed. */
export const defaultSpecialTokens: readonly string[] = ['<pad>', '<bos>', '<eos>'];

/** Texts, for example sentences; the order does not matter. */
export type Texts = Iterable<string> | AsyncIterable<string>;

/**
 * Trains a byte-level BPE tokenizer and returns its `tokenizer.json`, which Hugging Face's
 * `tokenizers` load with the same ids in any language.
 *
 * Words are split as GPT-2 does and spelled in bytes, so that any text of any script, emoji and
 * line ends included, has tokens and decodes to exactly itself; nothing is ever unknown. Merges do
 * not hang on the order of the texts: equally frequent pairs are merged by lower ids.
 *
 * @throws TypeError, RangeError for what are no texts, and for a fault in the options, such as a
 *   vocabSize that leaves no room for the special tokens and the 256 bytes
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
 * in the texts, or too rare for `vocabSize`, are spelled in bytes, so that here, too, every text
 * decodes to exactly itself.
 *
 * @throws TypeError, RangeError for what are no texts, and for a fault in the options, such as a
 *   vocabSize that leaves no room for the special tokens and the 256 bytes
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
      // A lone surrogate has no UTF-8: encoding will see U+FFFD in its place.
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
        `${owner}: specialTokens[${index}] must be a string that is not empty, got ${describe(token)}`,
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

/** Gives the event loop a turn whenever 10 ms have passed, so that a server stays responsive. */
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

/** Texts that can be gone through, now or later. @throws TypeError with the way out */
function checkTexts(owner: string, value: unknown): void {
  if (typeof value === 'string') {
    // It would be taken for its characters.
    throw new TypeError(
      `${owner}: texts must be an iterable of texts, got ${describe(value)}; for a single one pass [text]`,
    );
  }
  if (isIterable(value)) return;
  throw new TypeError(
    `${owner}: texts must be an iterable of strings, such as an array, got ${describe(value)}`,
  );
}
