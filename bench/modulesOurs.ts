/**
 * A process of suite `modules`: our side. The first one also writes the inputs and parameters that the
 * peers use, and the outputs and gradients with dropout off that they are compared with.
 *
 * Arguments: file of inputs and results, turn (1 writes it), threads, timed iterations, warmup.
 */
import {
  manualSeed,
  rand,
  randn,
  readSafetensors,
  setNumThreads,
  tensor,
  tidy,
  writeSafetensors,
  type Tensor,
} from 'torchformer';
import { moduleCases, type ModuleCase, type ModuleInputs } from './moduleCases.js';
import { moduleShape } from './moduleNames.js';
import type { ModulesResult } from './modules.js';

const [file, turn, threads, iterations, warmup] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  string,
];
setNumThreads(Number(threads));
manualSeed(1);
const cases = moduleCases();
if (turn === '1') await writeReference();

const inputs = await readInputs();
const seconds: Record<string, number[]> = {};
for (const [name, each] of Object.entries(cases)) {
  each.module.train();
  const times = Array.from({ length: Number(warmup) + Number(iterations) }, () => {
    const start = performance.now();
    forwardAndBackward(each, inputs);
    return (performance.now() - start) / 1000;
  });
  seconds[name] = times.slice(Number(warmup));
}
const result: ModulesResult = { seconds };
console.log(JSON.stringify(result));

/** Gradients are reset first, as in a training loop. */
function forwardAndBackward({ module, run }: ModuleCase, given: ModuleInputs): void {
  module.zeroGrad();
  given.x.grad?.dispose();
  given.x.grad = null;
  tidy(() => {
    const output = run(given);
    output.backward(output.ndim === 0 ? {} : { gradient: given.upstream });
  });
}

async function readInputs(): Promise<ModuleInputs> {
  await using stored = await readSafetensors(file);
  return {
    x: (await stored.tensor('x')).requiresGrad_(),
    upstream: await stored.tensor('upstream'),
    ids: await stored.tensor('ids'),
    mask: await stored.tensor('mask'),
  };
}

async function writeReference(): Promise<void> {
  const { B, S, dModel, vocabSize } = moduleShape;
  // Sentences of S / 2 to S tokens.
  const lengths = Array.from({ length: B }, (_, row) => S / 2 + (row % (S / 2 + 1)));
  const present = tensor(
    lengths.map((length) => Array.from({ length: S }, (_, column) => column < length)),
  );
  const drawn = rand([B, S])
    .mul(vocabSize - 1)
    .add(1);
  const given: ModuleInputs = {
    x: randn([B, S, dModel]).requiresGrad_(),
    upstream: randn([B, S, dModel]),
    ids: drawn.mul(present).to({ dtype: 'int64' }),
    mask: present.unsqueeze(1),
  };
  const { x, upstream, ids, mask } = given;
  const stored = new Map<string, Tensor>([
    ['x', x.detach()],
    ['upstream', upstream],
    ['ids', ids],
    ['mask', mask],
  ]);
  for (const [name, each] of Object.entries(cases)) {
    const { module, run } = each;
    module.eval();
    const output = run(given).detach();
    stored.set(`${name}/output`, output);
    forwardAndBackward(each, given);
    if (x.grad !== null) stored.set(`${name}/gradient/x`, x.grad.detach().clone());
    for (const [key, value] of module.stateDict()) stored.set(`${name}/state/${key}`, value);
    for (const [key, parameter] of gradientNames(each)) {
      stored.set(`${name}/gradient/${key}`, parameter);
    }
  }
  await writeSafetensors(file, stored);
}

/** Copies of the gradients, by the keys of the state dict. */
function gradientNames({ module }: ModuleCase): [string, Tensor][] {
  const state = module.stateDict({ keepVars: true });
  return [...state].flatMap(([key, value]): [string, Tensor][] =>
    value.grad === null ? [] : [[key, value.grad.detach().clone()]],
  );
}
