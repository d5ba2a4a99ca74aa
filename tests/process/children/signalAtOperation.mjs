// Sends the process a signal at its n-th operation on files: before it, or in the middle of a write.
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

const names = ['chmod', 'mkdir', 'open', 'rename', 'rm'];

/**
 * @param {number} count the operation, from 1
 * @param {string} signal sent once
 */
export function signalAtOperation(count, signal) {
  let left = count;
  const isNow = () => --left === 0;
  const send = () => process.kill(process.pid, signal);
  for (const name of names) {
    const call = fs[name];
    fs[name] = async (...args) => {
      if (isNow()) send();
      const result = await call(...args);
      if (name === 'open') interruptWrites(result, isNow, send);
      return result;
    };
  }
  syncBuiltinESMExports();
}

function interruptWrites(handle, isNow, send) {
  const { write, writeFile } = handle;
  handle.write = async (bytes, offset = 0, length = bytes.byteLength - offset, position = null) => {
    if (!isNow()) return write.call(handle, bytes, offset, length, position);
    // As a full pipe or disk may do it: the caller writes the rest.
    const half = await write.call(handle, bytes, offset, Math.ceil(length / 2), position);
    send();
    return half;
  };
  handle.writeFile = async (...args) => {
    if (isNow()) send();
    return writeFile.call(handle, ...args);
  };
}
