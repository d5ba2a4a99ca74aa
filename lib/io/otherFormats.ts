/** Files mistaken for safetensors files, recognized by their first bytes. */

const formats: readonly { readonly start: readonly number[]; readonly name: string }[] = [
  { start: [0x50, 0x4b, 0x03, 0x04], name: 'a PyTorch file (torch.save), or another zip archive' },
  // The pickled number that torch.save wrote first before PyTorch 1.6.
  {
    start: [0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46],
    name: 'an old PyTorch file (torch.save)',
  },
  // Pickles that start with a dict or a class name, and pickles of the protocols with frames.
  ...[0x02, 0x03].flatMap((protocol) =>
    [0x7d, 0x63].map((opcode) => ({ start: [0x80, protocol, opcode], name: 'a Python pickle' })),
  ),
  ...[0x04, 0x05].map((protocol) => ({ start: [0x80, protocol, 0x95], name: 'a Python pickle' })),
];

const conversion =
  'save the weights as safetensors in Python first: ' +
  "safetensors.torch.save_file(torch.load(path, weights_only=True), 'model.safetensors')";

/**
 * Describes the actual format of a file and the fix; null if the format is unknown.
 *
 * @param start at least the first 8 bytes of the file, or all of a shorter file
 */
export function otherFormat(start: Uint8Array): string | null {
  const format = formats.find((format) => format.start.every((byte, at) => start[at] === byte));
  if (format !== undefined) return `not a safetensors file but ${format.name}; ${conversion}`;
  if (new TextDecoder('latin1').decode(start.subarray(0, 8)) === 'version ') {
    return 'not a safetensors file but a Git LFS pointer; fetch the file itself: git lfs pull';
  }
  return null;
}
