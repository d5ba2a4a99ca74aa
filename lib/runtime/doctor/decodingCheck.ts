/** Tries on this processor what decoding promises: a source has the same target in every batch. */
import type { NativeAddon } from '../native/nativeAddon.js';

/** A tensor: nothing here needs its methods, so an object with a slot is enough. */
export interface Slot {
  readonly slot: number;
}

/** What decoding gave for one source: token ids and the bits of all scores. */
type Target = string;

/** The precisions that are tried. */
export const checkedPrecisions = ['float32', 'int8'] as const;

const vocabulary = 1_000;
const width = 128;
const innerWidth = 256;
const [layers, heads] = [2, 4];
const [bos, eos] = [1, 2];
/** So many that products take several threads and another part of a tile than those of one row. */
const sourceCount = 24;
const longestTarget = 6;

/**
 * Decodes sources alone and together with a small model of random weights.
 *
 * @returns which source has different tokens or scores; null: none
 * @throws TorchError if decoding fails
 */
export function checkDecoding(addon: NativeAddon<Slot>, precision: string): string | null {
  const model = addon.bind('torchformer_decode::prepare', '')(randomWeights(addon), layers, heads, {
    precision,
  });
  const decode = decoderOf(addon, model);
  const sources = makeSources();
  const together = decode(sources);
  const alone = sources.flatMap((source) => decode([source]));
  const different = sources.findIndex((_, index) => alone[index] !== together[index]);
  if (different < 0) return null;
  return (
    `a source of ${sources[different]?.length} tokens gave ${alone[different]} alone and ` +
    `${together[different]} among ${sourceCount} sources`
  );
}

/** The same ids at every run, of 3 to 13 tokens. */
function makeSources(): number[][] {
  return Array.from({ length: sourceCount }, (_, index) => {
    const ids = Array.from({ length: 1 + ((index * 7) % 11) }, (_unused, place) => {
      return 3 + ((index * 131 + place * place * 17) % (vocabulary - 3));
    });
    return [bos, ...ids, eos];
  });
}

/** In the order of native/core/decode/prepared_model.h; without positions. */
function randomWeights(addon: NativeAddon<Slot>): (Slot | null)[] {
  addon.manualSeed(1);
  const normal = addon.bind('aten::normal', 'float_float');
  const random = (...shape: number[]) => normal(0, 0.15, shape) as Slot;
  const linear = (out: number, input: number) => [random(out, input), random(out)];
  const norm = () => [normal(1, 0.1, [width]) as Slot, random(width)];
  const times = <T>(count: number, make: () => T[]) => Array.from({ length: count }, make).flat();
  const attention = () => times(4, () => linear(width, width));
  const feedForward = () => [
    ...linear(innerWidth, width),
    ...linear(width, innerWidth),
    null,
    null,
  ];
  return [
    ...[random(vocabulary, width), null, random(vocabulary, width), null, null],
    ...linear(vocabulary, width),
    ...times(2, norm),
    ...times(layers, () => [...times(2, norm), ...attention(), ...feedForward()]),
    ...times(layers, () => [...times(3, norm), ...attention(), ...attention(), ...feedForward()]),
  ];
}

/** Decodes sources together; the targets are in their order. */
function decoderOf(addon: NativeAddon<Slot>, model: unknown): (sources: number[][]) => Target[] {
  const generation = addon.bind('torchformer_decode::start', '')([model], bos, eos);
  const add = addon.bind('torchformer_decode::add', '');
  const run = addon.bind('torchformer_decode::run', '');
  const pending = addon.bind('torchformer_decode::pending', '');
  return (sources) => {
    const requests = sources.map(
      (source) => add(generation, source, longestTarget, { scores: true }) as number,
    );
    const found = new Map<number, Target>();
    while (pending(generation) !== 0) {
      const [whole, real] = run(generation, 1, 1) as [Slot, Slot];
      const numbers = Array.from(new BigInt64Array(addon.toBytes(whole)), Number);
      readTargets(numbers, new Uint32Array(addon.toBytes(real)), found);
    }
    return requests.map((request) => found.get(request) ?? 'nothing');
  };
}

/**
 * Reads the events of native/core/decode/decode_ops.cc, which here are of one kind: a source with its
 * one target.
 */
function readTargets(numbers: number[], scores: Uint32Array, found: Map<number, Target>): void {
  let [at, scoreAt] = [0, 0];
  while (at < numbers.length) {
    const [request = 0, kind, , , count = 0] = numbers.slice(at, at + 5);
    const tokens = numbers.slice(at + 5, at + 5 + count);
    const scoreCount = 1 + (numbers[at + 5 + count] ?? 0);
    const bits = scores.slice(scoreAt, scoreAt + scoreCount);
    const isTarget = kind === 1;
    const scoreText = Array.from(bits, (each) => each.toString(16)).join(' ');
    found.set(
      request,
      isTarget ? `tokens ${tokens.join(' ')} with scores ${scoreText}` : 'no numbers',
    );
    scoreAt += isTarget ? scoreCount : 0;
    // A fault has three numbers.
    at += isTarget ? 7 + count : 3;
  }
}
