/**
 * Runs in a separate process, which a broken driver may crash: loads libtorch and multiplies on
 * each device. Writes each step and each fact immediately as a line of JSON to file descriptor 3,
 * so that a crash does not lose them.
 */
import { writeSync } from 'node:fs';
import { TorchError } from '../errors.js';
import { bootstrap, loadedRuntime, nativeAddon } from '../native/load.js';
import type { NativeAddon } from '../native/nativeAddon.js';

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
      readonly threads: number;
    }
  /** How many GPUs can be used; if there are none although the CUDA library is loaded, why. */
  | { readonly kind: 'cuda'; readonly devices: number; readonly problem: string | null }
  | { readonly kind: 'device'; readonly device: string; readonly problem: string | null }
  | { readonly kind: 'fault'; readonly message: string };

function report(fact: ProbeFact): void {
  writeSync(3, `${JSON.stringify(fact)}\n`);
}

/** A tensor: these are used only here, so an object with a slot is enough. */
interface Slot {
  readonly slot: number;
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
  const { cpuCapability, float32Products, bfloat16Products } = addon.versions();
  report({
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

  report({ kind: 'step', step: 'detecting GPUs' });
  const { devices, problem } = addon.cudaStatus();
  report({ kind: 'cuda', devices, problem });
  for (let index = 0; index < devices; index++) multiply(addon, `cuda:${index}`);
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
