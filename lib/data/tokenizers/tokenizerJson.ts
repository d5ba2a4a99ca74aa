import { TorchError } from '../../runtime/errors.js';
import { describe } from '../../runtime/arguments.js';

type JsonObject = Record<string, unknown>;

/**
 * Checks what the native library assumes: for a few kinds of invalid `tokenizer.json`, it does not
 * throw but ends the process. It reports everything else itself.
 *
 * @param name the name of the file in messages
 * @throws TorchError ERR_DATA
 */
export function checkTokenizerJson(value: unknown, name: string): void {
  if (!isObject(value) || !isObject(value['model'])) {
    throw new TorchError(
      'ERR_DATA',
      `${name}: this is not a tokenizer.json of Hugging Face's tokenizers: it has no "model"`,
    );
  }
  const model = value['model'];
  const isBpe = model['type'] === 'BPE' || (model['type'] === undefined && 'merges' in model);
  if (isBpe && isObject(model['vocab']) && Array.isArray(model['merges'])) {
    checkMerges(model['vocab'], model['merges'], model['continuing_subword_prefix'], name);
  }
  // An explicit stack, because a hostile file can nest deeper than the call stack.
  const parts = [value['normalizer'], value['pre_tokenizer'], value['decoder']];
  while (parts.length > 0) {
    const part = parts.pop();
    if (!isObject(part)) continue;
    for (const key of ['normalizers', 'pretokenizers', 'decoders']) {
      const inner = part[key];
      if (Array.isArray(inner)) for (const item of inner as unknown[]) parts.push(item);
    }
    const fault = faultOfPart(part);
    if (fault !== null) throw new TorchError('ERR_DATA', `${name}: ${fault}`);
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Both formats of merges: pairs `["a", "b"]`, and strings `"a b"` as in older files. */
function checkMerges(vocab: JsonObject, merges: unknown[], prefix: unknown, name: string): void {
  const skip = typeof prefix === 'string' ? prefix.length : 0;
  const known = (token: string): boolean => Object.hasOwn(vocab, token);
  merges.forEach((merge, index) => {
    if (typeof merge === 'string' && merge.startsWith('#version')) return;
    const pair: unknown[] = typeof merge === 'string' ? merge.split(' ') : (merge as unknown[]);
    const [left, right] = Array.isArray(pair) ? pair : [];
    const refuse = (reason: string): never => {
      const shown = JSON.stringify(merge) ?? describe(merge);
      throw new TorchError('ERR_DATA', `${name}: merge ${index}, ${shown}, ${reason}`);
    };
    if (pair?.length !== 2 || typeof left !== 'string' || typeof right !== 'string') {
      return refuse('is not a pair of tokens');
    }
    for (const token of [left, right, left + right.slice(skip)]) {
      if (!known(token))
        refuse(`needs the token ${JSON.stringify(token)}, which is not in the vocabulary`);
    }
    if (skip > 0 && !right.startsWith(prefix as string)) {
      refuse(`has a right part without the prefix ${JSON.stringify(prefix)}`);
    }
  });
}

function faultOfPart(part: JsonObject): string | null {
  switch (part['type']) {
    case 'FixedLength':
      return part['length'] === 0 ? 'the pre-tokenizer FixedLength has length 0' : null;
    case 'Strip':
      // As a normalizer, Strip has other fields and is safe.
      return typeof part['stop'] === 'number' && part['stop'] > 0
        ? 'the decoder Strip with "stop" above 0 fails on short tokens and is not supported'
        : null;
    case 'Precompiled':
      return isCharsMap(part['precompiled_charsmap'])
        ? null
        : 'the normalizer Precompiled has a damaged "precompiled_charsmap"';
    default:
      return null;
  }
}

/** SentencePiece's table: the byte length of a trie, the trie, then its strings. */
function isCharsMap(text: unknown): boolean {
  if (typeof text !== 'string') return false;
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length < 8) return false;
  const trieBytes = bytes.readUInt32LE(0);
  return trieBytes > 0 && trieBytes % 4 === 0 && trieBytes + 4 <= bytes.length;
}
