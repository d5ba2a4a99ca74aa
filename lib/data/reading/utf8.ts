import { isUtf8 } from 'node:buffer';

/** Finds the first byte of a stream that is not valid UTF-8, in chunks of any size. */
export class Utf8Checker {
  /** The start of an incomplete character: at most three bytes. */
  private rest: Uint8Array = new Uint8Array(0);
  private checked = 0;

  /** Takes the next chunk. Returns the offset in the stream of the first invalid byte, or -1. */
  push(chunk: Uint8Array): number {
    const bytes = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    const end = endOfWholeCharacters(bytes);
    const whole = bytes.subarray(0, end);
    if (!isUtf8(whole)) return this.checked + firstInvalid(whole);
    this.checked += end;
    // A copy, because the caller may reuse the memory of its chunk.
    this.rest = bytes.slice(end);
    return -1;
  }

  /** Ends the stream. Returns the offset of an incomplete character, or -1. */
  end(): number {
    return this.rest.length === 0 ? -1 : this.checked;
  }
}

/** Number of bytes in the sequence of a lead byte, or 0 if it is not a lead byte. */
function sequenceLength(lead: number): number {
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) return 3;
  return lead < 0xf5 ? 4 : 0;
}

/** The end of the last complete character. */
function endOfWholeCharacters(bytes: Uint8Array): number {
  const length = bytes.length;
  for (let back = 1; back <= 3 && back <= length; back++) {
    const byte = bytes[length - back] as number;
    if ((byte & 0xc0) === 0x80) continue;
    return sequenceLength(byte) > back ? length - back : length;
  }
  return length;
}

/** The index of the first invalid byte; there must be one. */
function firstInvalid(bytes: Uint8Array): number {
  let at = 0;
  while (at < bytes.length) {
    const lead = bytes[at] as number;
    const length = sequenceLength(lead);
    if (length === 0) return at;
    for (let i = 1; i < length; i++) {
      const next = bytes[at + i];
      // The second byte also excludes overlong forms, surrogates and code points above U+10FFFF.
      const low = i > 1 ? 0x80 : lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
      const high = i > 1 ? 0xbf : lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
      if (next === undefined || next < low || next > high) return at;
    }
    at += length;
  }
  return at;
}
