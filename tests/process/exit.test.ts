import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runNode } from './support.js';

const child = (name: string) => fileURLToPath(new URL(`./children/${name}.mjs`, import.meta.url));

describe('a process that ends while native work goes on has its own exit code', () => {
  it.each([
    ['process.exit', 'exit', 'own', 5],
    ['an uncaught error', 'throw', 'own', 1],
    ['process.exit without exit listeners', 'exit', 'none', 5],
  ])('%s in the middle of training', (_name, way, listeners, code) => {
    for (let round = 0; round < 3; round++) {
      const { status, errors } = runNode([child('exitWhileTraining'), way, listeners]);
      expect(status, errors).toBe(code);
    }
  });

  it.each([
    ['process.exit', 'exit', 'own', 5],
    ['an uncaught error', 'throw', 'own', 1],
    ['process.exit without exit listeners', 'exit', 'none', 5],
  ])('%s in the middle of decoding', (_name, way, listeners, code) => {
    for (let round = 0; round < 3; round++) {
      const { status, errors } = runNode([child('exitWhileDecoding'), way, listeners]);
      expect(status, errors).toBe(code);
    }
  });

  it('process.exit in the middle of a backward pass', () => {
    for (let round = 0; round < 3; round++) {
      expect(runNode([child('exitInBackward')]).status).toBe(5);
    }
  });

  it('process.exit waits for the native job that runs, and not for those behind it', () => {
    const { status, output } = runNode([child('exitInLongJob')]);
    expect(status).toBe(5);
    const [alone, waited] = JSON.parse(output) as [number, number];
    expect(waited).toBeGreaterThan(alone / 10);
    // Fifty more would take that much.
    expect(waited).toBeLessThan(alone * 10);
  });
});
