/** Errors as plain values that another thread receives: a structured clone loses classes and codes. */
import { TorchError, type TorchErrorCode } from '../../runtime/errors.js';

/** An error, or another value that was thrown. */
export type TransferredError =
  | {
      readonly kind: 'error';
      readonly isTorchError: boolean;
      readonly name: string;
      readonly message: string;
      readonly stack: string | undefined;
      readonly code: string | null;
      readonly cause: TransferredError | null;
    }
  | { readonly kind: 'value'; readonly text: string };

const classes: Readonly<Record<string, ErrorConstructor>> = {
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
};

/** What another thread receives instead of `error`. */
export function transferable(error: unknown): TransferredError {
  if (!(error instanceof Error)) return { kind: 'value', text: String(error) };
  const { name, message, stack, cause } = error;
  const code: unknown = 'code' in error ? error.code : undefined;
  return {
    kind: 'error',
    isTorchError: error instanceof TorchError || name === 'TorchError',
    name: name in classes ? name : (standardNameOf(error) ?? name),
    message,
    stack,
    code: typeof code === 'string' ? code : null,
    cause: cause === undefined ? null : transferable(cause),
  };
}

/** The error in this thread: of the same class if that is TorchError or one of JavaScript's. */
export function received(given: TransferredError): Error {
  if (given.kind === 'value') return new Error(`thrown: ${given.text}`);
  const { isTorchError, name, message, stack, code } = given;
  const options = given.cause === null ? {} : { cause: received(given.cause) };
  const error = isTorchError
    ? new TorchError(code as TorchErrorCode, message, options)
    : new (classes[name] ?? Error)(message, options);
  if (error.name !== name) Object.defineProperty(error, 'name', { value: name });
  // Where it was thrown says more than where it was received.
  if (stack !== undefined) error.stack = stack;
  if (code !== null && !isTorchError) Object.defineProperty(error, 'code', { value: code });
  return error;
}

/** The class of JavaScript's that a class such as `TextTooLongError` extends. */
function standardNameOf(error: Error): string | undefined {
  return Object.keys(classes).find((name) => error instanceof (classes[name] as ErrorConstructor));
}
