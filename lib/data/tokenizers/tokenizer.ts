import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Encoding, Tokenizer as NativeTokenizer } from 'tokenizers';
import { TorchError } from '../../runtime/errors.js';
import {
  checkArray,
  checkBoolean,
  checkInstance,
  checkOptions,
  checkSignal,
  checkString,
  checkStrings,
  describe,
} from '../../runtime/arguments.js';
import { nativeTokenizers } from './nativeTokenizers.js';
import { checkTokenizerJson } from './tokenizerJson.js';
import { UnknownCharacters } from './unknownCharacters.js';

/** Options of {@link Tokenizer.encode} and {@link Tokenizer.encodeWithOffsets}. */
export interface TokenizerEncodeOptions {
  /**
   * Whether the tokenizer's post-processor adds its special tokens. Default false, because bos and
   * eos of a translation pair are explicit.
   */
  addSpecialTokens?: boolean | undefined;
}

/** Options of {@link Tokenizer.encodeBatch}. */
export interface TokenizerBatchOptions extends TokenizerEncodeOptions {
  /** Aborts between two groups of texts. */
  signal?: AbortSignal | undefined;
}

/** Options of {@link Tokenizer.decode} and {@link Tokenizer.decodeBatch}. */
export interface TokenizerDecodeOptions {
  /** Whether to omit special tokens (bos, eos, pad, …) from the text. Default true. */
  skipSpecialTokens?: boolean | undefined;
}

/** A text as tokens, each with its position: `text.slice(...offsets[i])`. */
export interface TextEncoding {
  /** The id of each token. */
  ids: number[];
  /** The tokens as in the vocabulary. */
  tokens: string[];
  /** Start and end in UTF-16 units, as JavaScript strings are indexed. */
  offsets: [number, number][];
}

/** Ids as arrays, or as the typed arrays of tensors. */
export type TokenIds = ArrayLike<number> | ArrayLike<bigint>;

/**
 * Number of texts per native call: enough to use all cores, few enough to abort and to free memory.
 * @internal
 */
export const textsPerCall = 1024;

/** Ids, and whether the text has characters that the tokenizer does not know. @internal */
export interface EncodedText {
  readonly ids: number[];
  readonly hasUnknown: boolean;
}

/**
 * Runs any Hugging Face `tokenizer.json` with Hugging Face's own library, off the event loop.
 *
 * Padding and truncation settings in the file are disabled: batches do their own padding, and a
 * silently truncated sentence would be a wrong translation pair. A lone surrogate in a text becomes
 * U+FFFD, as in any conversion to UTF-8.
 */
export class Tokenizer {
  /**
   * Number of rows that an embedding table needs: the highest id, including added tokens, plus one.
   * It equals the number of tokens unless the ids have gaps.
   */
  readonly vocabSize: number;
  /** Detects texts with unknown characters; created on first use. */
  private unknown: UnknownCharacters | null = null;

  private constructor(
    private readonly native: NativeTokenizer,
    private readonly json: string,
  ) {
    // Types prevent calls from TypeScript, but not from JavaScript.
    if (typeof native?.getVocab !== 'function') {
      throw new TypeError(
        'Tokenizer: the constructor is private; use Tokenizer.fromFile or Tokenizer.fromJson',
      );
    }
    let highest = -1;
    for (const id of Object.values(native.getVocab(true))) highest = Math.max(highest, id);
    this.vocabSize = highest + 1;
  }

  /**
   * Loads a `tokenizer.json`.
   *
   * @throws TorchError ERR_DATA if the file is missing or not a tokenizer
   */
  static async fromFile(path: string | URL): Promise<Tokenizer> {
    const isFileUrl = path instanceof URL && path.protocol === 'file:';
    if (!isFileUrl && (typeof path !== 'string' || path === '')) {
      throw new TypeError(
        `Tokenizer.fromFile: path must be a path or a file: URL, got ${describe(path)}`,
      );
    }
    const name = path instanceof URL ? fileURLToPath(path) : path;
    let text: string;
    try {
      text = await readFile(path, 'utf8');
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      const reasons: Readonly<Record<string, string>> = {
        ENOENT: `there is no such file (current folder: ${process.cwd()})`,
        ENOTDIR: 'there is no such file: a part of the path is a file, not a folder',
        EISDIR: 'it is a folder; pass the tokenizer.json in it',
      };
      const reason = reasons[code ?? ''] ?? message;
      throw new TorchError('ERR_DATA', `${name}: ${reason}`, { cause: error });
    }
    return Tokenizer.parse(text, name);
  }

  /**
   * Makes a tokenizer from the text of a `tokenizer.json`, or from its parsed object.
   *
   * @throws TorchError ERR_DATA if it is not a tokenizer
   */
  static fromJson(json: string | object): Tokenizer {
    if (typeof json !== 'string' && (typeof json !== 'object' || json === null)) {
      throw new TypeError(
        `Tokenizer.fromJson: json must be a string or an object, got ${describe(json)}`,
      );
    }
    return Tokenizer.parse(typeof json === 'string' ? json : textOf(json), 'tokenizer');
  }

  private static parse(text: string, name: string): Tokenizer {
    const json = text.startsWith('\ufeff') ? text.slice(1) : text;
    let value: unknown;
    try {
      value = JSON.parse(json);
    } catch (error) {
      throw new TorchError('ERR_DATA', `${name}: not valid JSON: ${(error as Error).message}`, {
        cause: error,
      });
    }
    checkTokenizerJson(value, name);
    let native: NativeTokenizer;
    try {
      native = nativeTokenizers().Tokenizer.fromString(json);
    } catch (error) {
      if (error instanceof TorchError) throw error;
      const { message } = error as Error;
      throw new TorchError('ERR_DATA', `${name}: not a tokenizer: ${message}`, { cause: error });
    }
    native.disableTruncation();
    native.disablePadding();
    return new Tokenizer(native, json);
  }

  /**
   * Encodes a text as ids.
   *
   * @throws TypeError if `text` is not a string
   * @throws TorchError ERR_DATA if the tokenizer cannot encode it
   */
  async encode(text: string, options?: TokenizerEncodeOptions): Promise<number[]> {
    return (await this.encodeNative(text, options, 'Tokenizer.encode')).getIds();
  }

  /** The ids, tokens and offsets of a text. @throws TypeError, TorchError as {@link encode} */
  async encodeWithOffsets(text: string, options?: TokenizerEncodeOptions): Promise<TextEncoding> {
    const encoding = await this.encodeNative(text, options, 'Tokenizer.encodeWithOffsets');
    const toUtf16 = utf16Offsets(text);
    const offsets = encoding.getOffsets().map(([start = 0, end = 0]): [number, number] => {
      return [toUtf16[start] ?? text.length, toUtf16[end] ?? text.length];
    });
    return { ids: encoding.getIds(), tokens: encoding.getTokens(), offsets };
  }

  /**
   * Encodes texts as ids, in their order.
   *
   * @throws TypeError, TorchError as {@link encode}; the signal's reason if it aborted
   */
  async encodeBatch(
    texts: readonly string[],
    options?: TokenizerBatchOptions,
  ): Promise<number[][]> {
    const owner = 'Tokenizer.encodeBatch';
    checkOptions(owner, options, ['addSpecialTokens', 'signal']);
    checkSignal(owner, 'signal', options?.signal);
    const settings = nativeOptions(owner, options);
    checkStrings(owner, 'texts', texts);
    const result: number[][] = [];
    for (let start = 0; start < texts.length; start += textsPerCall) {
      options?.signal?.throwIfAborted();
      const group = texts.slice(start, start + textsPerCall);
      const encodings = await asDataError(this.native.encodeBatch(group, settings), owner);
      for (const encoding of encodings) result.push(encoding.getIds());
    }
    return result;
  }

  /**
   * {@link encodeBatch} of a group of texts, which also reports unknown characters.
   *
   * @internal
   */
  async encodeNotingUnknown(owner: string, texts: readonly string[]): Promise<EncodedText[]> {
    this.unknown ??= new UnknownCharacters(this.json, (token) => this.native.tokenToId(token));
    const { unknown } = this;
    const settings = { addSpecialTokens: false };
    const encodings = await asDataError(this.native.encodeBatch([...texts], settings), owner);
    return encodings.map((encoding, index) => {
      const ids = encoding.getIds();
      const offsets = () => encoding.getOffsets();
      return { ids, hasUnknown: unknown.areIn(texts[index] as string, ids, offsets) };
    });
  }

  /**
   * Decodes ids to a text.
   *
   * @throws RangeError for an id that is not in the vocabulary
   */
  async decode(ids: TokenIds, options?: TokenizerDecodeOptions): Promise<string> {
    const owner = 'Tokenizer.decode';
    const skip = skipsSpecialTokens(owner, options);
    const list = this.checkIds(owner, 'ids', ids);
    return asDataError(this.native.decode(list, skip), owner);
  }

  /** Decodes lists of ids to texts, in their order. @throws RangeError as {@link decode} */
  async decodeBatch(
    batch: readonly TokenIds[],
    options?: TokenizerDecodeOptions,
  ): Promise<string[]> {
    const owner = 'Tokenizer.decodeBatch';
    const skip = skipsSpecialTokens(owner, options);
    checkArray(owner, 'ids', batch, 'an array of arrays of ids');
    // Unlike map, this does not skip holes.
    const lists = Array.from(batch, (ids, index) => this.checkIds(owner, `ids[${index}]`, ids));
    return asDataError(this.native.decodeBatch(lists, skip), owner);
  }

  /** The id of a token as in the vocabulary, or undefined if it has none. */
  idOf(token: string): number | undefined {
    checkString('Tokenizer.idOf', 'token', token);
    return this.native.tokenToId(token) ?? undefined;
  }

  /** The token of an id as in the vocabulary, or undefined if it has none. */
  tokenOf(id: number): string | undefined {
    if (typeof id !== 'number') {
      throw new TypeError(`Tokenizer.tokenOf: id must be a number, got ${describe(id)}`);
    }
    // The native library would convert -1 or 1.5 to another number.
    if (!Number.isInteger(id) || id < 0 || id >= this.vocabSize) return undefined;
    return this.native.idToToken(id) ?? undefined;
  }

  /** The ids below a model's `vocabSize` that no token has. @internal */
  unusedIds(vocabSize: number): number[] {
    const used = new Set(Object.values(this.native.getVocab(true)));
    const ids = Array.from({ length: vocabSize }, (_, id) => id);
    return ids.filter((id) => !used.has(id));
  }

  /** The `tokenizer.json` from which it was made, unchanged. */
  toJson(): string {
    return this.json;
  }

  private async encodeNative(
    text: string,
    options: TokenizerEncodeOptions | undefined,
    owner: string,
  ): Promise<Encoding> {
    checkOptions(owner, options, ['addSpecialTokens']);
    checkString(owner, 'text', text);
    return asDataError(this.native.encode(text, null, nativeOptions(owner, options)), owner);
  }

  private checkIds(owner: string, name: string, ids: TokenIds): number[] {
    if (typeof ids !== 'object' || ids === null || typeof ids.length !== 'number') {
      throw new TypeError(`${owner}: ${name} must be an array of ids, got ${describe(ids)}`);
    }
    return Array.from(ids as ArrayLike<number | bigint>, (value, index) => {
      const isNumber = typeof value === 'number' || typeof value === 'bigint';
      const id = isNumber ? Number(value) : NaN;
      if (!Number.isInteger(id) || id < 0 || id >= this.vocabSize) {
        throw new RangeError(
          `${owner}: ${name}[${index}] must be an id from 0 to ${this.vocabSize - 1}, got ${describe(value)}`,
        );
      }
      return id;
    });
  }
}

function nativeOptions(
  owner: string,
  options: TokenizerEncodeOptions = {},
): { addSpecialTokens: boolean } {
  const { addSpecialTokens = false } = options;
  return { addSpecialTokens: checkBoolean(owner, 'addSpecialTokens', addSpecialTokens) };
}

function skipsSpecialTokens(owner: string, options: TokenizerDecodeOptions = {}): boolean {
  checkOptions(owner, options, ['skipSpecialTokens']);
  const { skipSpecialTokens = true } = options;
  return checkBoolean(owner, 'skipSpecialTokens', skipSpecialTokens);
}

/** @throws TypeError if the object cannot be serialized, for example because it is circular */
function textOf(json: object): string {
  let reason = 'its toJSON returns undefined';
  try {
    const text: unknown = JSON.stringify(json);
    if (typeof text === 'string') return text;
  } catch (error) {
    reason = (error as Error).message;
  }
  throw new TypeError(`Tokenizer.fromJson: json cannot be written as JSON: ${reason}`);
}

/** A text that the tokenizer cannot encode (without an unk token, say) is an error of the data. */
async function asDataError<T>(work: Promise<T>, owner: string): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw new TorchError('ERR_DATA', `${owner}: ${(error as Error).message}`, { cause: error });
  }
}

/** Where each code point begins in UTF-16 units; the native library counts code points. */
function utf16Offsets(text: string): number[] {
  const offsets: number[] = [];
  for (let index = 0; index < text.length;) {
    offsets.push(index);
    index += (text.codePointAt(index) as number) > 0xffff ? 2 : 1;
  }
  offsets.push(text.length);
  return offsets;
}

/** @throws TypeError if `value` is not a Tokenizer, with the ways to make one */
export function checkTokenizer(owner: string, value: unknown): asserts value is Tokenizer {
  checkInstance(owner, 'tokenizer', value, Tokenizer, 'Tokenizer.fromFile or Tokenizer.fromJson');
}

/** @throws RangeError if the tokenizer has ids that the model does not have */
export function checkTokenizerFits(owner: string, tokenizer: Tokenizer, vocabSize: number): void {
  if (tokenizer.vocabSize <= vocabSize) return;
  throw new RangeError(
    `${owner}: the tokenizer has ${tokenizer.vocabSize} ids, the model only ${vocabSize}; ` +
      'make the model with tokenizer.vocabSize',
  );
}
