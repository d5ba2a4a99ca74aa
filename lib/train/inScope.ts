import { Scope } from '../tensor/scope.js';

/** Runs async work and disposes of every tensor created in it; return numbers, not tensors. */
export async function inScope<T>(work: () => Promise<T>): Promise<T> {
  const scope = new Scope();
  try {
    return await scope.run(work);
  } finally {
    scope.dispose();
  }
}
