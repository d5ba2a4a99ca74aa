/**
 * Links a Tensor to its native memory: the index of a slot in the environment's table of tensors. It
 * is in a private field, so that only this file can read or write it, and native code never gets an
 * invalid index.
 */
import { setImmediate } from 'node:timers';
import type { Tensor } from './tensor.js';

/** The slot of an object that native code did not create. */
const noSlot = -1;
/** The slot after the memory was freed. */
const disposedSlot = 0;

// The constructor reads the slot from here, because anyone could pass an argument.
let nextSlot = noSlot;

// Native code is loaded on first use; before that, there is nothing to free.
let freeSlot: (slot: number) => void = () => undefined;
let reportMemory: () => void = () => undefined;

/** Sets the native functions that free the tensor of a slot and report memory. @internal */
export function useSlots(free: (slot: number) => void, report: () => void): void {
  freeSlot = free;
  reportMemory = report;
}

/** The slot of a Tensor, 0 if it has been disposed of, -1 for any other value. @internal */
export let slotOf: (value: unknown) => number;

/** Frees the slot of an object and its memory; has no effect if called again. @internal */
export let releaseSlot: (holder: SlotHolder) => void;

/** Registers an object, so that its memory is freed when it is garbage collected. */
let collect: (holder: SlotHolder) => void;

/**
 * The base class of Tensor only. The files that Tensor imports (dispatcher calls, checks, methods)
 * recognize tensors by this class, which avoids import cycles.
 *
 * @internal
 */
export abstract class SlotHolder {
  #slot = nextSlot;
  // Whether the object is registered for garbage collection.
  #collected = false;

  constructor() {
    nextSlot = noSlot;
  }

  // Functions of this module rather than methods, which anyone could call.
  static {
    slotOf = (value) =>
      typeof value === 'object' && value !== null && #slot in value ? value.#slot : noSlot;
    releaseSlot = (holder) => {
      const slot = holder.#slot;
      if (slot <= disposedSlot) return;
      holder.#slot = disposedSlot;
      // By the time the object is collected, another tensor may have the slot.
      if (holder.#collected) collector.unregister(holder);
      freeSlot(slot);
    };
    collect = (holder) => {
      if (holder.#slot <= disposedSlot) return;
      holder.#collected = true;
      collector.register(holder, holder.#slot, holder);
    };
  }
}

const collector = new FinalizationRegistry<number>((slot) => freeSlot(slot));

// Recently created objects. Registering an object takes a fifth of the time of a small op, most
// tensors are disposed of within the tick that created them, and the collector frees none before its
// end. So only objects that still exist at the end of the tick, or when the list is full, are
// registered, and their memory is reported then.
const recent: SlotHolder[] = [];
const maxRecent = 1024;
let willRegister = false;

function registerRecent(): void {
  for (const holder of recent) collect(holder);
  recent.length = 0;
  reportMemory();
}

let newTensor = (): Tensor => {
  throw new Error('tensor/tensor.js, which defines Tensor, must be imported before the first op');
};

/** Sets the function that creates a Tensor by calling just the constructor. @internal */
export function useNewTensor(make: () => Tensor): void {
  newTensor = make;
}

/** Creates the Tensor of a slot that native code has filled. @internal */
export function makeTensor(slot: number): Tensor {
  nextSlot = slot;
  const tensor = newTensor();
  if (recent.push(tensor) >= maxRecent) registerRecent();
  if (!willRegister) {
    willRegister = true;
    const immediate = setImmediate(() => {
      willRegister = false;
      registerRecent();
    });
    // It must not keep the process alive.
    immediate.unref();
  }
  return tensor;
}

/** Whether `value` is a {@link Tensor}. */
export function isTensor(value: unknown): value is Tensor {
  return value instanceof SlotHolder;
}
