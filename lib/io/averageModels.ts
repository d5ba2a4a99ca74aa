/** The mean of the weights of several models. */
import type { Tokenizer } from '../data/tokenizers/tokenizer.js';
import { checkModel } from '../nn/model/checkModel.js';
import type { Transformer } from '../nn/model/transformer.js';
import { Module } from '../nn/module/module.js';
import {
  checkArray,
  checkChoice,
  checkOptions,
  describe,
  orDefault,
} from '../runtime/arguments.js';
import { TorchError } from '../runtime/errors.js';
import { noGrad } from '../tensor/autograd.js';
import { formatShape } from '../tensor/check.js';
import { call, callAsync } from '../tensor/dispatch.js';
import { isFloatingPoint } from '../tensor/dtype.js';
import { tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';
import { loadModel } from './checkpoint.js';
import { differingKey } from './differingKey.js';
import type { ModelFolderConfig } from './modelConfig.js';
import { openModelFolder, type OpenModelFolder } from './openModelFolder.js';
import { checkpointFault } from './safetensorsHeader.js';

/** Options of {@link averageModels}. */
export interface AverageModelsOptions {
  /** dtype of the sums; default `'float64'`, whose mean is exact to the last bit of float32 */
  accumulate?: 'float32' | 'float64';
}

/** The result of {@link averageModels}. */
export interface AveragedModel {
  /** Has the mean of the weights; in eval mode. Its dtype is that of the models. */
  readonly model: Transformer;
  /** The tokenizer of the folders; null if they have none, and for models in memory. */
  readonly tokenizer: Tokenizer | null;
  /** Content of the first `config.json`; null for models in memory. */
  readonly config: ModelFolderConfig | null;
  /** The model folders that were read; empty for models in memory. */
  readonly folders: readonly string[];
}

/**
 * Averages the weights of models of one training, which often translates better than each of them
 * (Vaswani et al. 2017, section 6.1, averaged the last 5 checkpoints). Only one model and one tensor of the
 * others are in memory at a time.
 *
 * ```ts
 * const checkpoints = await selectCheckpoints('runs/a', { last: 5 });
 * const folders = checkpoints.map(({ folder }) => folder);
 * const { model, tokenizer, config } = await averageModels(folders);
 * ```
 *
 * @param models folders of models or runs, or models in memory; all of the same structure and tokenizer
 * @throws TypeError if `models` is empty or mixes both; RangeError if models in memory differ
 * @throws TorchError ERR_CHECKPOINT naming the folder and the first key of `config.json`, or of
 *   `tokenizer.json`, in which it differs from the first one, or what cannot be read; ERR_NON_FINITE
 *   naming a model and a weight that is NaN or infinite
 */
export async function averageModels(
  models: readonly (string | Transformer)[],
  options: AverageModelsOptions = {},
): Promise<AveragedModel> {
  const owner = 'averageModels';
  checkOptions(owner, options, ['accumulate']);
  const dtype = checkChoice(owner, 'accumulate', orDefault(options.accumulate, 'float64'), [
    'float32',
    'float64',
  ]);
  checkArray(owner, 'models', models, 'an array of model folders, or of models');
  if (models.length === 0) throw new TypeError(`${owner}: models must have at least one model`);
  const folders = models.filter((model) => typeof model === 'string');
  if (folders.length === models.length) return await averageFolders(folders, dtype);
  if (folders.length > 0) {
    throw new TypeError(`${owner}: models must be all folders, or all models in memory`);
  }
  return await averageInMemory(owner, models as readonly Transformer[], dtype);
}

/** A model, as the sum needs it. */
interface Source {
  /** For messages. */
  readonly name: string;
  /** The tensor of this name, which the caller disposes of. */
  readonly tensor: (name: string) => Promise<Tensor>;
}

type Accumulator = 'float32' | 'float64';

async function averageFolders(
  paths: readonly string[],
  dtype: Accumulator,
): Promise<AveragedModel> {
  const opened: OpenModelFolder[] = [];
  try {
    for (const path of paths) opened.push(await openModelFolder(path));
    checkSame(opened);
    const [first] = opened as [OpenModelFolder];
    const { model, tokenizer, config } = await loadModel(first.folder);
    try {
      const sources = opened.map(({ folder, weights }) => ({
        name: folder,
        tensor: (name: string) => weights.tensor(name),
      }));
      await average(model, sources, dtype);
    } catch (error) {
      model.dispose();
      throw error;
    }
    return { model, tokenizer, config, folders: opened.map(({ folder }) => folder) };
  } finally {
    for (const { weights } of opened) await weights.close();
  }
}

async function averageInMemory(
  owner: string,
  models: readonly Transformer[],
  dtype: Accumulator,
): Promise<AveragedModel> {
  for (const [index, model] of models.entries()) {
    if (!(model instanceof Module)) {
      throw new TypeError(
        `${owner}: models[${index}] must be a folder or a model, got ${describe(model)}`,
      );
    }
    checkModel(owner, model);
  }
  const [first] = models as [Transformer];
  const shapes = shapesOf(first);
  for (const [index, model] of models.entries()) {
    const key = differingKey(shapes, shapesOf(model));
    if (key === null) continue;
    throw new RangeError(`${owner}: models[${index}] differs from models[0] in ${key}`);
  }
  const states = models.map((model) => model.stateDict());
  const model = first.clone().eval();
  try {
    const sources = states.map((state, index) => ({
      name: `models[${index}]`,
      tensor: async (name: string) => Promise.resolve((state.get(name) as Tensor).detach()),
    }));
    await average(model, sources, dtype);
    return { model, tokenizer: null, config: null, folders: [] };
  } catch (error) {
    model.dispose();
    throw error;
  } finally {
    for (const state of states) for (const tensor of state.values()) tensor.dispose();
  }
}

/** Writes the mean of all sources into a model, whose values are not used. */
async function average(
  model: Transformer,
  sources: readonly Source[],
  dtype: Accumulator,
): Promise<void> {
  const state = model.stateDict();
  try {
    const done = new Set<Tensor>();
    for (const [name, target] of state) {
      // A tied weight has the same view under each of its names.
      if (done.has(target)) continue;
      done.add(target);
      if (isFloatingPoint(target.dtype)) await averageTensor(name, target, sources, dtype);
      else await checkEqual(name, target, sources);
    }
  } finally {
    for (const tensor of state.values()) tensor.dispose();
  }
}

async function averageTensor(
  name: string,
  target: Tensor,
  sources: readonly Source[],
  dtype: Accumulator,
): Promise<void> {
  const sum = noGrad(() => tidy(() => target.detach().to({ dtype, copy: true }).zero_()));
  try {
    for (const source of sources) {
      await withTensor(source, name, (tensor) => callAsync('aten::add_.Tensor', sum, tensor));
    }
    if (!(await isFinite(sum))) throw await notFinite(name, sources);
    noGrad(() => tidy(() => void target.copy_(sum.div(sources.length))));
  } finally {
    sum.dispose();
  }
}

/** A number that is not finite makes the sum of all not finite. */
async function isFinite(tensor: Tensor): Promise<boolean> {
  const total = (await callAsync('aten::sum', tensor, { dtype: 'float64' })) as Tensor;
  const value = total.item();
  total.dispose();
  return Number.isFinite(value);
}

async function notFinite(name: string, sources: readonly Source[]): Promise<TorchError> {
  for (const source of sources) {
    if (await withTensor(source, name, isFinite)) continue;
    return new TorchError(
      'ERR_NON_FINITE',
      `averageModels: ${name} of ${source.name} is not finite`,
    );
  }
  return new TorchError('ERR_NON_FINITE', `averageModels: the sum of ${name} is not finite`);
}

/** Integers and flags have no mean. */
async function checkEqual(name: string, target: Tensor, sources: readonly Source[]): Promise<void> {
  for (const source of sources) {
    const same = await withTensor(source, name, async (tensor) =>
      Promise.resolve(call('aten::equal', target, tensor) as boolean),
    );
    if (!same) throw checkpointFault(source.name, `${name} is ${target.dtype} and differs`);
  }
}

async function withTensor<T>(
  source: Source,
  name: string,
  use: (tensor: Tensor) => Promise<T>,
): Promise<T> {
  const tensor = await source.tensor(name);
  try {
    return await use(tensor);
  } finally {
    tensor.dispose();
  }
}

/** @throws TorchError ERR_CHECKPOINT naming what differs */
function checkSame(opened: readonly OpenModelFolder[]): void {
  const [first, ...others] = opened as [OpenModelFolder, ...OpenModelFolder[]];
  const seen = new Set([first.folder]);
  for (const other of others) {
    if (seen.has(other.folder)) {
      throw checkpointFault(other.folder, 'given twice; each model counts once in the mean');
    }
    seen.add(other.folder);
    const key =
      prefixed('config.json: ', differingKey(comparable(first.config), comparable(other.config))) ??
      prefixed('tokenizer.json: ', differingKey(tokenizerJson(first), tokenizerJson(other))) ??
      prefixed('model.safetensors: ', differingKey(infosOf(first), infosOf(other)));
    if (key === null) continue;
    throw checkpointFault(other.folder, `differs from ${first.folder} in ${key}`);
  }
}

function prefixed(prefix: string, key: string | null): string | null {
  return key === null ? null : prefix + key;
}

/** What the models must have in common: everything but dropout and the run. */
function comparable({ model, dtype, specialIds, ties, ownModules }: ModelFolderConfig): object {
  const { dropout, attentionDropout, ...structure } = model;
  return { model: structure, dtype, specialIds, ties, ownModules };
}

function tokenizerJson({ tokenizerText }: OpenModelFolder): unknown {
  return tokenizerText === null ? null : (JSON.parse(tokenizerText) as unknown);
}

function infosOf({ weights }: OpenModelFolder): Record<string, string> {
  return Object.fromEntries(weights.names.map((name) => [name, String(weights.info(name).shape)]));
}

function shapesOf(model: Transformer): Record<string, string> {
  return tidy(() =>
    Object.fromEntries(
      [...model.stateDict()].map(([name, { shape, dtype }]) => [
        name,
        `${dtype} ${formatShape(shape)}`,
      ]),
    ),
  );
}
