/** The stable codes of {@link TorchError}. */
export type TorchErrorCode =
  | 'ERR_ARGUMENT'
  | 'ERR_CHECKPOINT'
  | 'ERR_CUDA_LOST'
  | 'ERR_CUDA_UNAVAILABLE'
  | 'ERR_DATA'
  | 'ERR_DEVICE'
  | 'ERR_DISPOSED'
  | 'ERR_DTYPE'
  | 'ERR_INDEX'
  | 'ERR_LIBTORCH_VERSION'
  | 'ERR_NATIVE'
  | 'ERR_NATIVE_LOAD'
  | 'ERR_NON_FINITE'
  | 'ERR_NOT_IMPLEMENTED'
  | 'ERR_OUT_OF_MEMORY'
  | 'ERR_SHAPE'
  | 'ERR_UNKNOWN_OP';

/**
 * Every fault that comes from native code, the environment or a file.
 * Faults in the arguments of a typed function are `TypeError` or `RangeError` instead.
 */
export class TorchError extends Error {
  /** Which fault it is, for programs: `'ERR_CHECKPOINT'` and the like. */
  readonly code: TorchErrorCode;

  /**
   * @param code stable, for programs
   * @param message for people: what, where and the way out
   */
  constructor(code: TorchErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'TorchError';
    this.code = code;
  }
}
