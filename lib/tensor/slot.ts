/**
 * What ties a Tensor to its native memory: the number of a slot in the environment's table of
 * tensors. It lies in a private field, so that nothing but this file can read or write it, and a
 * number that native code gets is never a made-up one.
 */
import { setImmediate } from 'node:timers';
import type { Tensor } from './tensor.js';

/** The number of an object that native code did not make. */
const noSlot = -1;
/** The number once the memory is given back. */
const disposedSlot = 0;

// The constructor takes the number from here: as an argument anybody could pass one.
let nextSlot = noSlot;

// Native code is loaded at first use; before that there is nothing to free.
let freeSlot: (slot: number) => void = () => undefined;

/** Takes the native function that frees the tensor of a slot. @internal */
export function useFreeSlot(free: (slot: number) => void): void {
  freeSlot = free;
}

/** The slot of a Tensor, 0 once it is disposed of, -1 for any other value. @internal */
export let slotOf: (value: unknown) => number;

/** Gives the slot of an object and its memory back. Harmless when repeated. @internal */
export let releaseSlot: (holder: SlotHolder) => void;

/** Leaves the memory of an object to the collector. */
let collect: (holder: SlotHolder) => void;

/**
 * The base of Tensor, and of nothing else. All that Tensor is made of (the calls into the dispatcher,
 * the checks, the methods) knows a tensor by this class, so that no file needs one that needs it.
 *
 * @internal
 */
export abstract class SlotHolder {
  #slot = nextSlot;
  // Whether the collector is to free the slot.
  #collected = false;

  constructor() {
    nextSlot = noSlot;
  }

  // Functions of this module, not methods: those anybody could call.
  static {
    slotOf = (value) =>
      typeof value === 'object' && value !== null && #slot in value ? value.#slot : noSlot;
    releaseSlot = (holder) => {
      const slot = holder.#slot;
      if (slot <= disposedSlot) return;
      holder.#slot = disposedSlot;
      // The slot will be another tensor's when the object is collected.
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

// Objects made of late. To register an object costs a fifth of a small op, most tensors are
// disposed of within the tick that made them, and the collector frees none before its end anyway:
// only what is left then, or when many have come together, is registered.
const recent: SlotHolder[] = [];
const mostRecent = 1024;
let willRegister = false;

function registerRecent(): void {
  for (const holder of recent) collect(holder);
  recent.length = 0;
}

let newTensor = (): Tensor => {
  throw new Error('tensor/tensor.js, which has the class, must be imported before the first op');
};

/** Takes the function that makes a Tensor: the constructor alone, called at once. @internal */
export function useNewTensor(make: () => Tensor): void {
  newTensor = make;
}

/** The Tensor of a slot that native code has filled. @internal */
export function makeTensor(slot: number): Tensor {
  nextSlot = slot;
  const tensor = newTensor();
  if (recent.push(tensor) >= mostRecent) registerRecent();
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
