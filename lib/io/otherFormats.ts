/** Files that people take for safetensors files, known by their first bytes. */

const formats: readonly { readonly start: readonly number[]; readonly name: string }[] = [
  { start: [0x50, 0x4b, 0x03, 0x04], name: 'a PyTorch file (torch.save), or another zip archive' },
  // The pickle of the number that torch.save wrote in front before PyTorch 1.6.
  {
    start: [0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46],
    name: 'an old PyTorch file (torch.save)',
  },
  // Pickles that start with a dict or the name of a class, and those of the protocols with frames.
  ...[0x02, 0x03].flatMap((protocol) =>
    [0x7d, 0x63].map((opcode) => ({ start: [0x80, protocol, opcode], name: 'a Python pickle' })),
  ),
  ...[0x04, 0x05].map((protocol) => ({ start: [0x80, protocol, 0x95], name: 'a Python pickle' })),
];

const conversion =
  'save the weights as safetensors in Python first: ' +
  "safetensors.torch.save_file(torch.load(path, weights_only=True), 'model.safetensors')";

/**
 * What another format a file has and what to do, null if it is none that is known here.
 *
 * @param start at least its first 8 bytes, as far as there are any
 */
export function otherFormat(start: Uint8Array): string | null {
  const format = formats.find((format) => format.start.every((byte, at) => start[at] === byte));
  if (format !== undefined) return `not a safetensors file but ${format.name}; ${conversion}`;
  if (new TextDecoder('latin1').decode(start.subarray(0, 8)) === 'version ') {
    return 'not a safetensors file but a pointer of Git LFS; fetch the file itself: git lfs pull';
  }
  return null;
}
