/**
 * The few kinds of fields of protocol buffers that TensorBoard's events need. The number of a field is at
 * most 15, so that its key is one byte.
 */

const wireTypes = { varint: 0, double: 1, bytes: 2, float: 5 } as const;

/** The bytes of an integer of at least 0, in groups of 7 bits. */
function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  // Not by shifting, which keeps 32 bits.
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  bytes.push(rest);
  return bytes;
}

function key(field: number, wireType: number): number {
  return field * 8 + wireType;
}

/** A field with an integer of at least 0. */
export function integerField(field: number, value: number): Buffer {
  return Buffer.from([key(field, wireTypes.varint), ...varint(value)]);
}

/** A field with a float64. */
export function doubleField(field: number, value: number): Buffer {
  const bytes = Buffer.allocUnsafe(9);
  bytes.writeUInt8(key(field, wireTypes.double), 0);
  bytes.writeDoubleLE(value, 1);
  return bytes;
}

/** A field with a float32. */
export function floatField(field: number, value: number): Buffer {
  const bytes = Buffer.allocUnsafe(5);
  bytes.writeUInt8(key(field, wireTypes.float), 0);
  bytes.writeFloatLE(value, 1);
  return bytes;
}

/** A field with a text. */
export function textField(field: number, text: string): Buffer {
  return messageField(field, Buffer.from(text));
}

/** A field with a message of these fields. */
export function messageField(field: number, ...fields: readonly Uint8Array[]): Buffer {
  const length = fields.reduce((sum, bytes) => sum + bytes.length, 0);
  const head = Buffer.from([key(field, wireTypes.bytes), ...varint(length)]);
  return Buffer.concat([head, ...fields]);
}
