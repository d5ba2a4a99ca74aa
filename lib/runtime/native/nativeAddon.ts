/**
 * What the native addon offers. It knows no op by name: everything that computes goes through
 * libtorch's dispatcher (`bind`), the rest is what the dispatcher does not cover. What a tensor is in
 * JavaScript it leaves to whoever gives it `makeTensor`: a type parameter here.
 */

/** The element types that tensors can have here, by their PyTorch names. */
export type NativeDType =
  | 'float32'
  | 'float64'
  | 'float16'
  | 'bfloat16'
  | 'int8'
  | 'int16'
  | 'int32'
  | 'int64'
  | 'uint8'
  | 'bool';

/** One dispatcher op with its schema, callable on this thread or off the event loop. */
export interface BoundOp {
  /** Runs the op now, on this thread. */
  (...args: unknown[]): unknown;
  /** Runs the op on the environment's native thread, in the order of the calls. */
  async(...args: unknown[]): Promise<unknown>;
  /** Runs the op now, with what lies in the call frame; only for ops with one tensor as result. */
  readonly framed?: () => void;
  /** The schema as PyTorch prints it. */
  readonly schema: string;
}

/** How a backward pass begins and what it leaves. */
export interface BackwardOptions<Tensor> {
  /** One per tensor; null where the tensor has one element and the gradient is 1. */
  gradients: (Tensor | null)[];
  retainGraph: boolean;
  createGraph: boolean;
  /** Only these leaves get a gradient; empty: all. */
  inputs: Tensor[];
}

/** `done` is called once the results are read. */
export type GradientCallback<Tensor> = (gradients: (Tensor | null)[]) => {
  results: readonly (Tensor | null | undefined)[];
  done: () => void;
};

/** The addon, once {@link NativeAddon.initialize} was called. */
export interface NativeAddon<Tensor> {
  /** Called once per environment before anything else; returns the memory of the call frame. */
  initialize(classes: {
    /** Makes the Tensor of a slot of the native table. */
    makeTensor: (slot: number) => Tensor;
    /** The slot of a Tensor, 0 once it is disposed of, -1 for any other value. */
    slotOf: (value: unknown) => number;
    TorchError: new (code: never, message: string) => Error;
    /** Wrapper that forces a JS number to a floating Scalar; it has a numeric `value`. */
    FloatScalar: new (value: number) => { readonly value: number };
    /** Hears libtorch's warnings. */
    warn: (message: string) => void;
    /** A function that calls another one in the async context that is current now. */
    captureContext: () => (call: () => void) => void;
  }): ArrayBuffer;

  /** Names of all registered ops, `namespace::name` or `namespace::name.overload`. */
  listOps(): string[];
  /** Overload names of `namespace::name` in registration order, '' for the default one; [] if unknown. */
  overloads(name: string): string[];
  /** Throws TorchError ERR_UNKNOWN_OP. */
  bind(name: string, overload: string): BoundOp;
  /** The dispatcher's table of this op as PyTorch prints it, a line for each dispatch key. */
  kernels(name: string, overload: string): string;
  /** Whether this op has a kernel that is registered for the device and no other kind of device. */
  hasKernel(name: string, overload: string, device: string): boolean;

  /** Copies; `data`'s bytes are read as `dtype` (halves as 16-bit patterns, bool as bytes 0/1). */
  fromBytes(data: ArrayBufferView, shape: readonly number[], dtype: NativeDType): Tensor;
  /** Contiguous copy of the elements on the CPU, in row-major order. */
  toBytes(tensor: Tensor): ArrayBuffer;

  shape(tensor: Tensor): number[];
  strides(tensor: Tensor): number[];
  numel(tensor: Tensor): number;
  dtype(tensor: Tensor): NativeDType;
  device(tensor: Tensor): string;
  isContiguous(tensor: Tensor): boolean;
  isSparse(tensor: Tensor): boolean;
  /** True if both share memory. */
  sameStorage(a: Tensor, b: Tensor): boolean;

  requiresGrad(tensor: Tensor): boolean;
  setRequiresGrad(tensor: Tensor, value: boolean): void;
  isLeaf(tensor: Tensor): boolean;
  /** The same object at each call as long as the gradient's tensor is the same and not disposed. */
  grad(tensor: Tensor): Tensor | null;
  setGrad(tensor: Tensor, grad: Tensor | null): void;
  gradFunctionName(tensor: Tensor): string | null;
  /** Makes `tensor` hold `source`'s values, dtype, device and shape; the object stays the same. */
  setData(tensor: Tensor, source: Tensor): void;

  /** Frees the tensor of a slot. Harmless for a free one. */
  freeSlot(slot: number): void;

  backward(tensors: Tensor[], options: BackwardOptions<Tensor>): void;
  backwardAsync(tensors: Tensor[], options: BackwardOptions<Tensor>): Promise<void>;
  gradients(
    outputs: Tensor[],
    inputs: Tensor[],
    options: {
      gradients: (Tensor | null)[];
      retainGraph: boolean;
      createGraph: boolean;
      allowUnused: boolean;
    },
  ): (Tensor | null)[];

  /**
   * Calls `call` with the gradient of `tensor` in each backward pass; the result, if any, takes
   * its place. `release` is called when the hook is no longer needed. Returns its number.
   */
  registerHook(tensor: Tensor, call: GradientCallback<Tensor>, release: () => void): number;
  removeHook(tensor: Tensor, hook: number): void;
  /**
   * New tensors with the values of `outputs` whose backward pass calls `call`: gradients of the
   * outputs in, gradients of the inputs out.
   */
  attachBackward(
    name: string,
    inputs: Tensor[],
    outputs: Tensor[],
    call: GradientCallback<Tensor>,
    release: () => void,
  ): Tensor[];

  gradMode(): boolean;
  setGradMode(enabled: boolean): void;

  /** Seeds this environment's generator (and the process's default one, for raw ops). */
  manualSeed(seed: number | bigint): void;
  /** uint8 tensor. */
  rngState(): Tensor;
  setRngState(state: Tensor): void;

  /** Waits for the async op that runs and ends the native thread; later async calls are refused. */
  stopWorker(): void;

  setNumThreads(count: number): void;
  numThreads(): number;

  /** Times of all ops of the process; one at a time. */
  startProfile(): void;
  /** Ends it; in no order. */
  stopProfile(): { op: string; calls: number; milliseconds: number }[];

  memory(): { tensors: number; bytes: number; nativeBytes: number };
  /** What the collector was told about memory of tensors, in all. */
  reportedBytes(): number;

  /** Version facts of the loaded libtorch. */
  versions(): {
    torch: string;
    abi: string;
    cpuCapability: string;
    /** Library of float32 matrix products, and how bfloat16 ones are done. */
    float32Products: string;
    bfloat16Products: string;
  };

  /** GPUs that can be used; with the CUDA library `opened` and none, libtorch's reason. */
  cudaStatus(): { devices: number; opened: boolean; problem: string | null };
  /** These take the number of a GPU that is there. */
  cudaMemory(device: number): {
    readonly free: number;
    readonly total: number;
    readonly allocated: number;
    readonly reserved: number;
    readonly peakAllocated: number;
    readonly peakReserved: number;
  };
  cudaResetPeakMemory(device: number): void;
  cudaSynchronize(device: number): void;
  cudaSynchronizeAsync(device: number): Promise<void>;
  /** Asks the driver, `library`; the capability has a major and a minor number. */
  cudaDeviceFacts(device: number, library: string): { name: string; major: number; minor: number };
  /** Of all GPUs. */
  cudaEmptyCache(): void;
  /** Whether products of float32 matrices on GPUs may be computed in TF32. */
  tf32(): boolean;
  setTf32(allowed: boolean): void;
}
