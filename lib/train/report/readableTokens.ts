/** Tokens of a vocabulary as a reader would write them. */

/** Printable bytes stand for themselves in byte-level vocabularies, the others for these characters. */
const byteOf: ReadonlyMap<string, number> = byteCharacters();

function byteCharacters(): Map<string, number> {
  const isPrintable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  const characters = new Map<string, number>();
  let others = 0;
  for (let byte = 0; byte < 256; byte++) {
    const code = isPrintable(byte) ? byte : 0x100 + others++;
    characters.set(String.fromCodePoint(code), byte);
  }
  return characters;
}

/** The space of byte-level vocabularies, and that of SentencePiece. */
const byteSpace = '\u0120';
const pieceSpace = /^\u2581+/;

/**
 * Of a text's tokens: `Ġfür` is stored as `ĠfÃ¼r`, and is shown as `für`; so is `▁für`. A part of a
 * character is `�`, a space alone `␣`.
 */
export function readableTokens(tokens: readonly string[]): string[] {
  const isByteLevel = tokens.some((token) => token.startsWith(byteSpace));
  return tokens.map((token) => {
    const text = isByteLevel ? fromBytes(token) : token;
    const shown = text.replace(pieceSpace, '').trimStart();
    return shown === '' && text !== '' ? '\u2423' : shown;
  });
}

/** Special tokens may have characters that stand for no byte. */
function fromBytes(token: string): string {
  const bytes = Array.from(token, (character) => byteOf.get(character));
  return bytes.every((byte) => byte !== undefined) ? Buffer.from(bytes).toString('utf8') : token;
}
