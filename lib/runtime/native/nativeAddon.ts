/**
 * The functions of the native addon. It refers to no op by name: all computation goes through
 * libtorch's dispatcher (`bind`), and the rest is what the dispatcher does not cover. The
 * JavaScript type of tensors is a type parameter, because the caller provides `makeTensor`.
 */

/** The supported element types of tensors, by their PyTorch names. */
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

/** A dispatcher op with its schema, callable on this thread or off the event loop. */
export interface BoundOp {
  /** Runs the op now, on this thread. */
  (...args: unknown[]): unknown;
  /** Runs the op on the environment's native thread, in the order of the calls. */
  async(...args: unknown[]): Promise<unknown>;
  /** How to call it with the call frame; only for ops whose results are all tensors. */
  readonly frame: FrameCall | undefined;
  /** The schema as PyTorch prints it. */
  readonly schema: string;
}

/** How to call one op with the call frame. */
export interface FrameCall {
  /** Runs the op now, with the content of the frame. */
  call(): void;
  /** In schema order. */
  readonly argumentNames: readonly string[];
  /** How many of them can be passed without their names. */
  readonly positionalCount: number;
  readonly resultCount: number;
}

/** The memory of the call frame and the numbers in it; native/bind/call_frame.h explains them. */
export interface CallFrame {
  readonly memory: ArrayBuffer;
  readonly mostArguments: number;
  /** Kinds of arguments. */
  readonly omitted: number;
  readonly null: number;
  readonly tensor: number;
  readonly number: number;
  readonly boolean: number;
  readonly string: number;
  /** Results that are not new tensors. */
  readonly nullResult: number;
  readonly refused: number;
  readonly firstArgument: number;
}

/** Options of a backward pass. */
export interface BackwardOptions<Tensor> {
  /** One per tensor; null if the tensor has one element and its gradient is 1. */
  gradients: (Tensor | null)[];
  retainGraph: boolean;
  createGraph: boolean;
  /** The leaves to accumulate gradients in; empty: all. */
  inputs: Tensor[];
}

/** `done` is called after the results have been read. */
export type GradientCallback<Tensor> = (gradients: (Tensor | null)[]) => {
  results: readonly (Tensor | null | undefined)[];
  done: () => void;
};

/** The addon after {@link NativeAddon.initialize} was called. */
export interface NativeAddon<Tensor> {
  /** Must be called first, once per environment. */
  initialize(classes: {
    /** Creates the Tensor for a slot of the native table. */
    makeTensor: (slot: number) => Tensor;
    /** The slot of a Tensor, 0 after it was disposed of, -1 for any other value. */
    slotOf: (value: unknown) => number;
    TorchError: new (code: never, message: string) => Error;
    /** Wrapper that forces a JS number to a floating Scalar; it has a numeric `value`. */
    FloatScalar: new (value: number) => { readonly value: number };
    /** Called with each warning of libtorch. */
    warn: (message: string) => void;
    /** Returns a function that calls another one in the current async context. */
    captureContext: () => (call: () => void) => void;
  }): CallFrame;
  /** Returns a new number that stands for a string in the call frame. */
  frameString(text: string): number;

  /** Names of all registered ops, `namespace::name` or `namespace::name.overload`. */
  listOps(): string[];
  /** Overload names of `namespace::name` in registration order, '' for the default one; [] if unknown. */
  overloads(name: string): string[];
  /** Throws TorchError ERR_UNKNOWN_OP. */
  bind(name: string, overload: string): BoundOp;
  /** The dispatcher's table of this op as PyTorch prints it, one line per dispatch key. */
  kernels(name: string, overload: string): string;
  /** Whether this op has a kernel that is registered for this kind of device alone. */
  hasKernel(name: string, overload: string, device: string): boolean;

  /** Copies the bytes of `data` as `dtype` (halves as 16-bit patterns, bool as bytes 0/1). */
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
  /** The same object at each call, as long as the gradient is the same and not disposed of. */
  grad(tensor: Tensor): Tensor | null;
  setGrad(tensor: Tensor, grad: Tensor | null): void;
  gradFunctionName(tensor: Tensor): string | null;
  /** Gives `tensor` the values, dtype, device and shape of `source`; the object stays the same. */
  setData(tensor: Tensor, source: Tensor): void;

  /** Frees the tensor of a slot. Does nothing for a free slot. */
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
   * Calls `call` with the gradient of `tensor` in each backward pass; its result, if any, replaces
   * the gradient. `release` is called when the hook is no longer needed. Returns its number.
   */
  registerHook(tensor: Tensor, call: GradientCallback<Tensor>, release: () => void): number;
  removeHook(tensor: Tensor, hook: number): void;
  /**
   * Returns tensors with the values of `outputs` whose backward pass calls `call`, which computes
   * the gradients of the inputs from those of the outputs.
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

  /** Waits for the running async op and ends the native thread; later async calls are rejected. */
  stopWorker(): void;

  setNumThreads(count: number): void;
  numThreads(): number;

  /** Starts timing all ops of the process; one profile at a time. */
  startProfile(): void;
  /** Ends the profile; the ops are in no particular order. */
  stopProfile(): { op: string; calls: number; milliseconds: number }[];

  memory(): { tensors: number; bytes: number; nativeBytes: number };
  /** Reports the memory of all tensors to the garbage collector. */
  reportMemory(): void;
  /** Total tensor memory that was reported to the garbage collector. */
  reportedBytes(): number;

  /** Version facts of the loaded libtorch. */
  versions(): {
    torch: string;
    abi: string;
    cpuCapability: string;
    /** The library for float32 matrix products, and how bfloat16 ones are computed. */
    float32Products: string;
    bfloat16Products: string;
    /** The kernel for products with int8 weights, or `none` and what is used instead. */
    int8Products: string;
  };

  /** Usable GPUs; if there are none although the CUDA library is `opened`, libtorch's reason. */
  cudaStatus(): { devices: number; opened: boolean; problem: string | null };
  /** The `device` of this and the following functions is the index of an existing GPU. */
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
  /** From the driver, `library`; the compute capability has a major and a minor number. */
  cudaDeviceFacts(device: number, library: string): { name: string; major: number; minor: number };
  /** For all GPUs. */
  cudaEmptyCache(): void;
  /** Whether products of float32 matrices on GPUs may be computed in TF32. */
  tf32(): boolean;
  setTf32(allowed: boolean): void;
}
