import { Adafactor } from '../../optim/adafactor.js';
import { Adam, AdamW } from '../../optim/adam.js';
import { SGD } from '../../optim/sgd.js';
import type { BaseSettings, Optimizer, ParameterGroup } from '../../optim/optimizer.js';
import { noGrad } from '../../tensor/autograd.js';
import type { Tensor } from '../../tensor/tensor.js';
import type { TrainingOptimizer } from '../trainerOptions.js';
import { settled } from './deviceMemory.js';

type AnyOptimizer = Optimizer<BaseSettings>;
type OptimizerClass = new (groups: readonly ParameterGroup<BaseSettings>[]) => AnyOptimizer;

const known: readonly unknown[] = [Adam, AdamW, Adafactor, SGD];

/** Elements to measure: more than a processor's second cache holds, at the least memory. */
const enough = 2 ** 22;

/**
 * Seconds of an update with the parameters' dense gradients, from an update of copies of some of them.
 * Sparse gradients take little time. Call it in a scope, after a backward pass.
 *
 * @returns 0 for optimizers of other packages, which cannot be copied
 */
export async function updateSeconds(
  optimizer: TrainingOptimizer,
  parameters: readonly Tensor[],
): Promise<number> {
  if (!known.includes(optimizer.constructor)) return 0;
  const dense = parameters.filter(({ grad }) => grad !== null && !grad.isSparse);
  const all = dense.reduce((sum, { numel }) => sum + numel, 0);
  const chosen = new Set<Tensor>();
  let elements = 0;
  for (const parameter of dense.toSorted((a, b) => a.numel - b.numel)) {
    if (elements >= enough) break;
    chosen.add(parameter);
    elements += parameter.numel;
  }
  const groups = (optimizer as AnyOptimizer).paramGroups
    .map((group) => ({
      ...group,
      params: group.params.filter((one) => chosen.has(one)).map(copyOf),
    }))
    .filter(({ params }) => params.length > 0);
  const [device] = dense.map(({ device }) => device);
  if (groups.length === 0 || device === undefined) return 0;
  using copy = new (optimizer.constructor as OptimizerClass)(groups);
  // The first update makes the state.
  await copy.stepAsync();
  await settled(device);
  const start = performance.now();
  await copy.stepAsync();
  await settled(device);
  return ((performance.now() - start) / 1000) * (all / elements);
}

function copyOf(parameter: Tensor): Tensor {
  const copy = noGrad(() => parameter.detach().clone()).requiresGrad_();
  copy.grad = parameter.grad;
  return copy;
}
