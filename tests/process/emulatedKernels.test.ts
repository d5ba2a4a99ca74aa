/**
 * The CUDA kernels without a GPU: compiled for the CPU and run thread by thread (native/cuda/host), they
 * take the place of the CPU's own kernels in a child process, and come to what those come to. All sizes
 * and types are tried by `npm run test:kernels`.
 */
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { root, runNode } from './support.js';

type Findings = Record<string, number[]>;

function run(args: readonly string[]): { found: Findings; errors: string } {
  const child = join(root, 'tests/process/children/emulatedKernels.mjs');
  const { status, output, errors } = runNode([child, ...args]);
  if (status !== 0) throw new Error(`the child ended with ${status}: ${errors}`);
  return { found: JSON.parse(output) as Findings, errors };
}

let own: Findings;
let emulated: Findings;
let warnings: string;
beforeAll(() => {
  own = run([]).found;
  const library = join(root, 'build/Release/libtorchformer_cuda_emulated.so');
  ({ found: emulated, errors: warnings } = run([library]));
}, 120_000);

it('they do take the place of the CPU kernels', () => {
  // libtorch tells it once, of the first op.
  expect(warnings).toContain('Overriding a previously registered kernel');
  expect(warnings).toContain('torchformer_device::');
});

const tolerances: [string, number][] = [
  ['float32, packed rows', 2e-6],
  ['float64', 1e-12],
  ['by the sample, eps outside', 2e-6],
  ['root mean square, gated', 2e-6],
  ['gelu, sparse gradients', 2e-6],
  ['odd width', 2e-6],
  // A sum in another order can round to the next of 8 bits.
  ['bfloat16 results', 2 ** -8],
  ['add_norm of 8', 2e-6],
  ['add_norm of 7', 2e-6],
  ['add_norm of 1100', 2e-6],
];

it.each(tolerances)('%s: losses, weights and gradients are those of the CPU', (name, tolerance) => {
  const [expected, got] = [own[name] as number[], emulated[name] as number[]];
  expect(got).toHaveLength(expected.length);
  expected.forEach((value, index) => {
    expect(Math.abs((got[index] as number) / value - 1)).toBeLessThan(tolerance);
  });
});

it('every case was compared', () => {
  expect(Object.keys(own).sort()).toEqual(tolerances.map(([name]) => name).sort());
});
