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
  | 'ERR_UNKNOWN_OP'
  | 'ERR_WORKER';

/**
 * An error from native code, the environment or a file.
 * Wrong arguments of a typed function throw `TypeError` or `RangeError` instead.
 */
export class TorchError extends Error {
  /** The kind of error, for programs: `'ERR_CHECKPOINT'`, for example. */
  readonly code: TorchErrorCode;

  /**
   * @param code the kind of error, which is stable
   * @param message what is wrong, where, and how to fix it
   */
  constructor(code: TorchErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'TorchError';
    this.code = code;
  }
}
