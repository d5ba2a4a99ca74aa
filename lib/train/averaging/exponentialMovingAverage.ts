import {
  checkBoolean,
  checkFunction,
  checkInstance,
  checkObject,
  checkOptions,
  checkProbability,
  orDefault,
} from '../../runtime/arguments.js';
import { TorchError } from '../../runtime/errors.js';
import { Module } from '../../nn/module/module.js';
import type { Parameter } from '../../nn/module/parameter.js';
import { noGrad } from '../../tensor/autograd.js';
import { formatShape } from '../../tensor/check.js';
import { call, callAsync } from '../../tensor/dispatch.js';
import { keep, tidy } from '../../tensor/scope.js';
import { Tensor } from '../../tensor/tensor.js';

/** Options of {@link ExponentialMovingAverage}. */
export interface ExponentialMovingAverageOptions {
  /** share of the average that is kept at each update, from 0 to 1; default 0.999 (PyTorch's) */
  decay?: number;
  /**
   * limit the decay to (1 + n) / (10 + n) at the n-th update after the first, so that the average forgets
   * the initial weights sooner, as in TensorFlow and fairseq; default false
   */
  warmup?: boolean;
}

/** The state of an {@link ExponentialMovingAverage}: tensors for a safetensors file, and a number. */
export interface MovingAverageState {
  /** the averages by the parameters' names: views of the live tensors */
  tensors: Map<string, Tensor>;
  /** number of updates so far */
  updates: number;
}

interface Average {
  readonly name: string;
  readonly parameter: Parameter;
  readonly value: Tensor;
}

/**
 * The exponential moving average of a model's weights over training steps (Polyak averaging), which
 * often translates better than the weights of the last step. Equal to PyTorch's
 * `AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))`: the first update copies the weights,
 * each further one computes decay · average + (1 - decay) · weights.
 *
 * ```ts
 * const average = new ExponentialMovingAverage(model, { decay: 0.999 });
 * // after each step of the optimizer
 * await average.updateAsync();
 * // with the averages in the place of the weights
 * const { loss } = await average.withAverages(() => evaluate(model, batches, { pad }));
 * ```
 *
 * It averages the parameters that are trainable when it is created, a tied one once, in their dtype and
 * on their device; in float32 if that is half precision. This takes as much memory as they do. Buffers
 * are not averaged.
 */
export class ExponentialMovingAverage {
  /** The model whose weights are averaged. */
  readonly model: Module;
  /** Share of the average that is kept at each update. */
  readonly decay: number;
  /** Whether the decay is limited at the first updates. */
  readonly warmup: boolean;
  readonly #averages: readonly Average[];
  #updates = 0;
  #isSwapped = false;

  /**
   * @throws TypeError if `model` is not a Module; RangeError if it has no trainable parameter, or `decay`
   *   is not from 0 to 1
   */
  constructor(model: Module, options: ExponentialMovingAverageOptions = {}) {
    const owner = 'ExponentialMovingAverage';
    checkInstance(owner, 'model', model, Module, 'makeModel');
    checkOptions(owner, options, ['decay', 'warmup']);
    this.decay = checkProbability(owner, 'decay', orDefault(options.decay, 0.999));
    this.warmup = checkBoolean(owner, 'warmup', orDefault(options.warmup, false));
    this.model = model;
    const trainable = model.namedParameters().filter(([, { requiresGrad }]) => requiresGrad);
    if (trainable.length === 0) {
      throw new RangeError(`${owner}: the model has no trainable parameter to average`);
    }
    this.#averages = tidy(() =>
      noGrad(() =>
        trainable.map(([name, parameter]) => ({
          name,
          parameter,
          value: keep(parameter.detach().to({ dtype: dtypeOfAverage(parameter), copy: true })),
        })),
      ),
    );
  }

  /** Number of updates so far. */
  get updates(): number {
    return this.#updates;
  }

  /** Whether the averages are now in the model, and its weights here. */
  get isSwapped(): boolean {
    return this.#isSwapped;
  }

  /**
   * Takes the weights of a step into the average; call it after the step.
   *
   * @throws TypeError while the averages are in the model; RangeError if a parameter has another shape
   *   than before; TorchError ERR_DISPOSED
   */
  update(): void {
    const weights = noGrad(() => this.#start((job) => void call(...job)));
    for (const tensor of weights) tensor.dispose();
    this.#updates++;
  }

  /**
   * Like {@link update}, but off the event loop. Do not change the weights until the promise settles.
   */
  async updateAsync(): Promise<void> {
    const jobs: Promise<unknown>[] = [];
    const weights = noGrad(() => this.#start((job) => jobs.push(callAsync(...job))));
    try {
      await Promise.all(jobs);
    } finally {
      for (const tensor of weights) tensor.dispose();
    }
    this.#updates++;
  }

  /**
   * Runs one native call for all averages of one dtype and device.
   * @returns the tensors to dispose of when the calls are done
   */
  #start(run: (job: Parameters<typeof call>) => void): Tensor[] {
    this.#refuseSwapped('update');
    const groups = new Map<string, Average[]>();
    for (const average of this.#averages) {
      checkShape('ExponentialMovingAverage.update', average.name, average.parameter, average.value);
      const kind = `${average.value.dtype} ${average.value.device}`;
      groups.set(kind, [...(groups.get(kind) ?? []), average]);
    }
    const created: Tensor[] = [];
    for (const averages of groups.values()) {
      const values = averages.map(({ value }) => value);
      const weights = averages.map(({ parameter, value }) => {
        const weight = keep(tidy(() => parameter.detach().to({ dtype: value.dtype })));
        created.push(weight);
        return weight;
      });
      run(
        this.#updates === 0
          ? ['aten::_foreach_copy_', values, weights]
          : ['aten::_foreach_lerp_.Scalar', values, weights, 1 - this.#currentDecay()],
      );
    }
    return created;
  }

  #currentDecay(): number {
    const n = this.#updates;
    return this.warmup ? Math.min(this.decay, (1 + n) / (10 + n)) : this.decay;
  }

  /**
   * Exchanges the model's weights and the averages: once to validate or save the model with its averages,
   * and again to continue the training. The model's parameters stay the same objects.
   */
  swap(): void {
    tidy(() =>
      noGrad(() => {
        for (const { name, parameter, value } of this.#averages) {
          checkShape('ExponentialMovingAverage.swap', name, parameter, value);
          const weights = parameter.detach().clone();
          parameter.copy_(value);
          value.copy_(weights);
          weights.dispose();
        }
      }),
    );
    this.#isSwapped = !this.#isSwapped;
  }

  /**
   * Runs a function with the averages in the model, and puts the weights back when it has returned, or
   * when its promise has settled.
   *
   * @returns the result of `fn`
   * @throws TypeError if the averages are in the model already
   */
  async withAverages<T>(fn: () => T | Promise<T>): Promise<T> {
    checkFunction('ExponentialMovingAverage.withAverages', 'fn', fn);
    this.#refuseSwapped('withAverages');
    this.swap();
    try {
      return await fn();
    } finally {
      this.swap();
    }
  }

  /**
   * Copies the averages into a model with the same parameters, such as a clone; default: into the averaged
   * model, whose weights are lost.
   *
   * @throws TypeError if `model` is not a Module, or while the averages are in the averaged model;
   *   RangeError naming a parameter that is missing or has another shape. Nothing has changed then
   */
  copyTo(model: Module = this.model): void {
    const owner = 'ExponentialMovingAverage.copyTo';
    checkInstance(owner, 'model', model, Module, 'makeModel');
    this.#refuseSwapped('copyTo');
    const targets = new Map(model.namedParameters({ removeDuplicate: false }));
    const copies = this.#averages.map(({ name, value }): [Tensor, Tensor] => {
      const target = targets.get(name);
      if (target === undefined) {
        throw new RangeError(`${owner}: the model has no parameter "${name}"`);
      }
      checkShape(owner, name, target, value);
      return [target, value];
    });
    noGrad(() => {
      for (const [target, value] of copies) target.copy_(value);
    });
  }

  /**
   * The state dict of the model with the averages in the place of the weights, to save it without a swap:
   * under all names, with the parameters and buffers that are not averaged. The values are views.
   *
   * @throws TypeError while the averages are in the model
   */
  modelState(): Map<string, Tensor> {
    this.#refuseSwapped('modelState');
    const averages = new Map<Tensor, Tensor>(
      this.#averages.map(({ parameter, value }) => [parameter, value]),
    );
    const views = new Map<Tensor, Tensor>();
    return new Map(
      [...this.model.stateDict({ keepVars: true })].map(([name, own]) => {
        const view = views.get(own) ?? (averages.get(own) ?? own).detach();
        views.set(own, view);
        return [name, view];
      }),
    );
  }

  /**
   * The averages and the number of updates, for an exact continuation.
   * @throws TypeError while the averages are in the model
   */
  stateDict(): MovingAverageState {
    this.#refuseSwapped('stateDict');
    const tensors = new Map(this.#averages.map(({ name, value }) => [name, value.detach()]));
    return { tensors, updates: this.#updates };
  }

  /**
   * Loads the state of an average of the same parameters. Everything is checked before anything changes.
   *
   * @throws TorchError ERR_CHECKPOINT for other names or shapes; TypeError if `state` is not the state of
   *   an average, or while the averages are in the model
   */
  loadStateDict(state: MovingAverageState): void {
    const owner = 'ExponentialMovingAverage.loadStateDict';
    this.#refuseSwapped('loadStateDict');
    const { tensors, updates } = checkedState(owner, state);
    const names = new Set(this.#averages.map(({ name }) => name));
    const unexpected = [...tensors.keys()].find((name) => !names.has(name));
    if (unexpected !== undefined) throw misfit(owner, `the model has no parameter "${unexpected}"`);
    for (const { name, value } of this.#averages) {
      const given = tensors.get(name);
      if (given === undefined) throw misfit(owner, `the state lacks "${name}"`);
      const [expected, shape] = [formatShape(value.shape), formatShape(given.shape)];
      if (shape !== expected) throw misfit(owner, `"${name}" is ${shape}, expected ${expected}`);
    }
    noGrad(() => {
      for (const { name, value } of this.#averages) value.copy_(tensors.get(name) as Tensor);
    });
    this.#updates = updates;
  }

  /** Frees the averages, but not the model. */
  dispose(): void {
    for (const { value } of this.#averages) value.dispose();
  }

  /** Calls {@link dispose} at the end of a block: `using average = new ExponentialMovingAverage(…)`. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  #refuseSwapped(method: string): void {
    if (!this.#isSwapped) return;
    throw new TypeError(
      `ExponentialMovingAverage.${method}: the averages are in the model, and its weights here; ` +
        'call swap() first',
    );
  }
}

/** In half precision, steps of 1 - decay would be rounded away. */
function dtypeOfAverage({ dtype }: Tensor): 'float32' | 'float64' {
  return dtype === 'float64' ? 'float64' : 'float32';
}

function checkShape(owner: string, name: string, parameter: Tensor, average: Tensor): void {
  const [own, expected] = [formatShape(parameter.shape), formatShape(average.shape)];
  if (own === expected) return;
  throw new RangeError(`${owner}: parameter "${name}" is ${own}, its average ${expected}`);
}

function checkedState(owner: string, state: unknown): MovingAverageState {
  const expected = 'the result of stateDict(), { tensors, updates }';
  const { tensors, updates } = checkObject(owner, 'state', state, expected);
  const areTensors =
    tensors instanceof Map && [...tensors.values()].every((value) => value instanceof Tensor);
  if (areTensors && Number.isSafeInteger(updates) && (updates as number) >= 0) {
    return state as MovingAverageState;
  }
  throw new TypeError(`${owner}: state must be ${expected}`);
}

function misfit(owner: string, reason: string): TorchError {
  return new TorchError('ERR_CHECKPOINT', `${owner}: ${reason}`);
}
