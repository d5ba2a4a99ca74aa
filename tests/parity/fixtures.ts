/** The committed fixtures, and how to compare with them. The format: head of make_fixtures.py. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { readSafetensors, tidy } from 'torchformer';
import type { Tensor } from 'torchformer';

export type FloatType = 'float32' | 'float64';
export type Tensors = ReadonlyMap<string, Tensor>;
type Options = Readonly<Record<string, number>>;

/** Constructor arguments under the names of the Python class. */
export type Given = Readonly<Record<string, number | string | boolean | (number | string)[]>>;

/** One call of a module, or of a function (`state` null). */
export interface Case {
  key: string;
  title: string;
  module: string;
  options: Given;
  state: string | null;
  arguments: (string | null)[];
  outputs: string[];
  upstream: string[];
  inputGradients: string[];
}

/** A case with inputs and results of one type. */
export interface ModuleCase extends Case {
  dtype: FloatType;
}

/** A case whose inputs are the same numbers in each of its types. */
export interface ExactCase extends Case {
  dtypes: (FloatType | 'bfloat16')[];
  /** How far PyTorch itself comes in bfloat16, and the limit here; null where not run in it. */
  bfloat16: { output: number; gradient: number; limit: number } | null;
}

/** Updates of a moving average: `<key>/weights<step>/<name>` and `<key>/average<step>/<name>`. */
export interface AverageCase {
  key: string;
  decay: number;
  warmup: boolean;
  dtype: FloatType;
  steps: number;
}

/** What a class starts from after the manual seed. */
export interface InitialState {
  module: string;
  options: Given;
  keys: string[];
  parameters: string[];
  dropouts: Record<string, number>;
}

/** Ten steps of an optimizer; `weights` is the key prefix of the parameters after them. */
export interface TrainingRun {
  optimizer: 'Adam' | 'SGD';
  lr: number;
  dtype: FloatType;
  losses: number[];
  validationLoss: number;
  weights: string | null;
}

/** Losses with label smoothing; `key` is the prefix of its tensors. */
export interface SmoothingCase {
  key: string;
  form: 'crossEntropy' | 'klDivergence';
  smoothing: number;
  dtype: FloatType;
}

/** The rates of a scheduler at each of the steps. */
export interface ScheduleCase {
  schedule: 'warmup' | 'inverseSquareRoot' | 'cosine' | 'linearDecay';
  options: { learningRate: number; warmup?: number; steps?: number; min?: number };
  rates: number[];
}

/** Steps of an optimizer with given gradients; settings under PyTorch's names. */
export interface OptimizerRun {
  key: string;
  optimizer: 'AdamW' | 'Adafactor';
  settings: Readonly<Record<string, number | number[]>>;
  dtype: FloatType;
}

interface Index {
  torch: string;
  modules: ModuleCase[];
  exact: Record<'seed000' | 'seed002' | 'options' | 'bfloat16', ExactCase[]>;
  finetuning: { modules: ModuleCase[]; averages: AverageCase[] };
  initial: { seed: number; modules: InitialState[] };
  positions: { maxLen: number; rowsOf512: number[] };
  makeModel: {
    options: Options;
    src: number[][];
    tgt: number[][];
    keys: string[];
    parameters: string[];
    dropouts: Record<string, number>;
    logProbabilities: number[][][];
  };
  training: {
    options: Options;
    pad: number;
    trainBatches: number;
    validateBatches: number;
    runs: TrainingRun[];
  };
  smoothing: { pad: number; cases: SmoothingCase[] };
  schedules: { steps: number[]; cases: ScheduleCase[] };
  optimizers: { steps: number; names: string[]; noDecay: string[]; runs: OptimizerRun[] };
  greedy: {
    options: Options;
    pad: number;
    bos: number;
    eos: number;
    batches: { sources: number[][]; maxLen: number; answers: number[][] }[];
  };
}

const folder = new URL('./fixtures/', import.meta.url);

export const index = JSON.parse(readFileSync(new URL('index.json', folder), 'utf8')) as Index;

/** All tensors of `fixtures/<name>.safetensors`. */
export async function readFixture(name: string): Promise<Tensors> {
  const file = await readSafetensors(fixturePath(name));
  try {
    return await file.tensors();
  } finally {
    await file.close();
  }
}

export function fixturePath(name: string): string {
  return fileURLToPath(new URL(`${name}.safetensors`, folder));
}

export function get(tensors: Tensors, key: string): Tensor {
  const found = tensors.get(key);
  if (found === undefined) throw new Error(`no tensor ${key} in the fixtures`);
  return found;
}

/** The tensors under `<prefix>/`, without it: a state dict. */
export function under(tensors: Tensors, prefix: string): Map<string, Tensor> {
  const start = `${prefix}/`;
  const found = [...tensors].filter(([key]) => key.startsWith(start));
  return new Map(found.map(([key, tensor]) => [key.slice(start.length), tensor]));
}

/** Largest absolute element, in float64; 0 for no elements. */
export function largest(tensor: Tensor): number {
  if (tensor.numel === 0) return 0;
  return tidy(() => tensor.detach().double().abs().max().item());
}

/** Largest absolute difference; shape and type must be equal. */
export function difference(actual: Tensor, expected: Tensor): number {
  expect([actual.dtype, ...actual.shape]).toEqual([expected.dtype, ...expected.shape]);
  return tidy(() => largest(actual.detach().double().sub(expected.double())));
}

/** Fails, naming what is compared, unless the difference is a number and within the tolerance. */
export function expectWithin(name: string, difference: number, tolerance: number): void {
  expect.soft(difference, name).toBeLessThanOrEqual(tolerance);
}
