import * as tf from '../../dist/index.js';
import { FromCallback } from './values.mjs';

/** What JavaScript itself says, without a name of ours: to read, call or convert what is none. */
const raw =
  /^Cannot (read|convert|mix|set|destructure|access|use|define|delete)|is not (a function|iterable|a constructor|callable|defined)|^Invalid|^Maximum call stack|^Reduce of|\[object \w+\]|null proto/;

/** Why an error is not one that callers can do something with; null when it is. */
export function problemOf(error) {
  if (error instanceof FromCallback) return null;
  // What an AbortSignal gives as its reason.
  if (error?.name === 'AbortError') return null;
  const ordinary =
    error instanceof TypeError || error instanceof RangeError || error instanceof tf.TorchError;
  if (!ordinary) return `threw ${error?.stack ?? String(error)}`;
  if (error instanceof tf.TorchError && typeof error.code !== 'string')
    return 'a TorchError without code';
  return raw.test(error.message) ? `an error of JavaScript's own: ${error.stack}` : null;
}
