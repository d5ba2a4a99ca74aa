/** The checksum of TensorBoard's files: CRC-32C, which Node.js does not have (its `crc32` is another). */

/** Castagnoli's polynomial, bits reversed. */
const polynomial = 0x82f63b78;

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ polynomial : value >>> 1;
  return value;
});

/** The CRC-32C of some bytes, as an unsigned integer: that of `'123456789'` is 0xe3069283. */
export function crc32c(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) value = (table[(value ^ byte) & 0xff] as number) ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

/** As files store it: rotated and shifted, because the CRC of bytes that contain their CRC is weak. */
export function maskedCrc32c(bytes: Uint8Array): number {
  const value = crc32c(bytes);
  return (((value >>> 15) | (value << 17)) + 0xa282ead8) >>> 0;
}
