/**
 * Runs in a process of its own, which a broken driver may end: loads libtorch and multiplies on each
 * device. Tells each step and each fact as a line of JSON on file descriptor 3, written at once, so
 * that what was found before a crash is not lost.
 */
import { writeSync } from 'node:fs';
import { TorchError } from '../errors.js';
import { bootstrap, loadedRuntime, nativeAddon } from '../native/load.js';
import type { NativeAddon } from '../native/nativeAddon.js';

/** One line of what the probe tells. */
export type ProbeFact =
  /** What it is about to do, for the case that it never comes back. */
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
      readonly threads: number;
    }
  /** How many GPUs can be used; with the CUDA library opened and none, why. */
  | { readonly kind: 'cuda'; readonly devices: number; readonly problem: string | null }
  | { readonly kind: 'device'; readonly device: string; readonly problem: string | null }
  | { readonly kind: 'fault'; readonly message: string };

function tell(fact: ProbeFact): void {
  writeSync(3, `${JSON.stringify(fact)}\n`);
}

/** A tensor here: nobody else sees it, and its number does. */
interface Slot {
  readonly slot: number;
}

function probe(): void {
  tell({ kind: 'step', step: 'opening libtorch' });
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
  const { cpuCapability, float32Products, bfloat16Products } = addon.versions();
  tell({
    kind: 'loaded',
    library: bootstrap().loaded(),
    opened: cuda.open,
    reason: cuda.reason,
    kernelsProblem: loadedRuntime()?.kernelsProblem ?? null,
    capability: cpuCapability,
    float32Products,
    bfloat16Products,
    threads: addon.numThreads(),
  });
  multiply(addon, 'cpu');

  tell({ kind: 'step', step: 'asking for GPUs' });
  const { devices, problem } = addon.cudaStatus();
  tell({ kind: 'cuda', devices, problem });
  for (let index = 0; index < devices; index++) multiply(addon, `cuda:${index}`);
}

/** Tells whether a product of two matrices comes out right. */
function multiply(addon: NativeAddon<Slot>, device: string): void {
  tell({ kind: 'step', step: `multiplying two matrices on ${device}` });
  let problem: string | null = null;
  try {
    const values = addon.fromBytes(new Float32Array([1, 2, 3, 4]), [2, 2], 'float32');
    const there = addon.bind('aten::to', 'device')(values, device, 'float32', false, true);
    const product = addon.bind('aten::mm', '')(there, there) as Slot;
    const result = [...new Float32Array(addon.toBytes(product))].join();
    if (result !== '7,10,15,22') problem = `gave ${result} in place of 7,10,15,22`;
  } catch (error) {
    problem = (error as Error).message;
  }
  tell({ kind: 'device', device, problem });
}

try {
  probe();
} catch (error) {
  tell({ kind: 'fault', message: (error as Error).message });
  process.exitCode = 1;
}
