/**
 * Runs in a separate process, which a broken driver may crash: loads libtorch, multiplies on each
 * device and decodes. Writes each step and each fact immediately as a line of JSON to file descriptor 3,
 * so that a crash does not lose them.
 */
import { writeSync } from 'node:fs';
import { TorchError } from '../errors.js';
import { bootstrap, loadedRuntime, nativeAddon } from '../native/load.js';
import type { NativeAddon } from '../native/nativeAddon.js';
import { checkDecoding, checkedPrecisions, type Slot } from './decodingCheck.js';

/** One line of the probe's output. */
export type ProbeFact =
  /** The step that starts now, in case it never ends. */
  | { readonly kind: 'step'; readonly step: string }
  | {
      readonly kind: 'loaded';
      readonly library: string | null;
      readonly opened: boolean;
      readonly reason: string;
      readonly kernelsProblem: string | null;
      readonly capability: string;
      readonly float32Products: string;
      readonly bfloat16Products: string;
      readonly int8Products: string;
      readonly threads: number;
    }
  /** How many GPUs can be used; if there are none although the CUDA library is loaded, why. */
  | { readonly kind: 'cuda'; readonly devices: number; readonly problem: string | null }
  | { readonly kind: 'device'; readonly device: string; readonly problem: string | null }
  /** Why decoding does not give the same alone and in a batch; null: it does. */
  | { readonly kind: 'decoding'; readonly precision: string; readonly problem: string | null }
  | { readonly kind: 'fault'; readonly message: string };

function report(fact: ProbeFact): void {
  writeSync(3, `${JSON.stringify(fact)}\n`);
}

function probe(): void {
  report({ kind: 'step', step: 'opening libtorch' });
  const addon = nativeAddon<Slot>();
  const cuda = loadedRuntime()?.cuda ?? { open: false, reason: 'not loaded' };
  addon.initialize({
    makeTensor: (slot) => ({ slot }),
    slotOf: (value) => (value as Partial<Slot> | null)?.slot ?? -1,
    TorchError,
    FloatScalar: class {} as never,
    warn: () => undefined,
    captureContext: () => (call) => call(),
  });
  const { cpuCapability, float32Products, bfloat16Products, int8Products } = addon.versions();
  report({
    kind: 'loaded',
    library: bootstrap().loaded(),
    opened: cuda.open,
    reason: cuda.reason,
    kernelsProblem: loadedRuntime()?.kernelsProblem ?? null,
    capability: cpuCapability,
    float32Products,
    bfloat16Products,
    int8Products,
    threads: addon.numThreads(),
  });
  multiply(addon, 'cpu');
  for (const precision of checkedPrecisions) decode(addon, precision);

  report({ kind: 'step', step: 'detecting GPUs' });
  const { devices, problem } = addon.cudaStatus();
  report({ kind: 'cuda', devices, problem });
  for (let index = 0; index < devices; index++) multiply(addon, `cuda:${index}`);
}

/** Reports whether sources are decoded the same alone and together. */
function decode(addon: NativeAddon<Slot>, precision: string): void {
  report({ kind: 'step', step: `decoding in ${precision}` });
  let problem: string | null = null;
  try {
    const difference = checkDecoding(addon, precision);
    if (difference !== null) problem = `depends on the batch: ${difference}`;
  } catch (error) {
    problem = `failed: ${(error as Error).message}`;
  }
  report({ kind: 'decoding', precision, problem });
}

/** Reports whether a matrix product is correct. */
function multiply(addon: NativeAddon<Slot>, device: string): void {
  report({ kind: 'step', step: `multiplying two matrices on ${device}` });
  let problem: string | null = null;
  try {
    const values = addon.fromBytes(new Float32Array([1, 2, 3, 4]), [2, 2], 'float32');
    const there = addon.bind('aten::to', 'device')(values, device, 'float32', false, true);
    const product = addon.bind('aten::mm', '')(there, there) as Slot;
    const result = [...new Float32Array(addon.toBytes(product))].join();
    if (result !== '7,10,15,22') problem = `gave ${result} instead of 7,10,15,22`;
  } catch (error) {
    problem = (error as Error).message;
  }
  report({ kind: 'device', device, problem });
}

try {
  probe();
} catch (error) {
  report({ kind: 'fault', message: (error as Error).message });
  process.exitCode = 1;
}
