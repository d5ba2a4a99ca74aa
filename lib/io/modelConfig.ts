/** `config.json` of a model folder: what besides the weights makes the model. */
import { checkSpecialIds, type SpecialIds } from '../data/tokenizers/specialIds.js';
import { checkedConfig, sharedVocabSize } from '../nn/model/modelOptions.js';
import type { ModelConfig, VocabSize } from '../nn/model/modelOptions.js';
import { describe } from '../runtime/options.js';
import { checkpointFault } from './safetensorsHeader.js';

const formatName = 'torchformer-model';
const formatVersion = 1;

/** Names of the columns that a model was trained on. */
export interface TranslationColumns {
  /** The column that the model translates from, such as `'en'`. */
  source: string;
  /** The column that it translates to, such as `'zh'`. */
  target: string;
}

/** Anything that JSON can hold. */
export type JsonValue =
  null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** The dtypes that models are trained and saved in. */
export type ModelDType = 'float32' | 'float64' | 'float16' | 'bfloat16';
const modelDTypes: readonly string[] = ['float32', 'float64', 'float16', 'bfloat16'];

/** The content of a model folder's `config.json`. */
export interface ModelFolderConfig {
  /** All options of `makeModel`, with the vocabularies' sizes. */
  readonly model: ModelConfig;
  /** Of the saved weights. */
  readonly dtype: ModelDType;
  /** Ids of pad, bos and eos; null: saved without. */
  readonly specialIds: SpecialIds | null;
  /** Ids of the tokenizer saved with it; null: none, or saved before this was noted. */
  readonly tokenizerVocabSize: number | null;
  /** What the sentence pairs' columns were called; null: saved without. */
  readonly columns: TranslationColumns | null;
  /** Facts of the run that made it, such as epoch and losses. */
  readonly training: { readonly [key: string]: JsonValue } | null;
}

/** The text of `config.json`. */
export function configJson(config: ModelFolderConfig): string {
  return `${JSON.stringify({ format: formatName, formatVersion, ...config }, null, 2)}\n`;
}

/** Whether a text is, or was before it was damaged, a `config.json` written here. */
export function looksLikeConfig(text: string): boolean {
  return text.includes(`"${formatName}"`);
}

/**
 * Reads `config.json`. Options of the model that it lacks, because they came later, are seed 001's.
 * @throws TorchError ERR_CHECKPOINT naming the file and the fault
 */
export function parseConfig(file: string, text: string): ModelFolderConfig {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw checkpointFault(file, `not valid JSON (${(error as Error).message})`, error);
  }
  if (!isRecord(parsed) || parsed['format'] !== formatName) {
    throw checkpointFault(
      file,
      `not the config of a model saved here: its format is no "${formatName}"`,
    );
  }
  const version = parsed['formatVersion'];
  if (typeof version !== 'number' || !Number.isInteger(version) || version < 1) {
    throw checkpointFault(
      file,
      `formatVersion must be an integer from 1, got ${describe(version)}`,
    );
  }
  if (version > formatVersion) {
    throw checkpointFault(
      file,
      `saved by a newer torchformer (format ${version}, this one reads up to ${formatVersion}); update it`,
    );
  }
  const { model, dtype, specialIds, tokenizerVocabSize = null, columns, training } = parsed;
  if (!isRecord(model))
    throw checkpointFault(file, `model must be an object, got ${describe(model)}`);
  if (typeof dtype !== 'string' || !modelDTypes.includes(dtype)) {
    throw checkpointFault(
      file,
      `dtype must be one of ${modelDTypes.join(', ')}, got ${describe(dtype)}`,
    );
  }
  const checkedModel = modelOf(file, model);
  if (specialIds !== null) checkIds(file, specialIds, checkedModel);
  if (tokenizerVocabSize !== null && !Number.isSafeInteger(tokenizerVocabSize)) {
    throw checkpointFault(
      file,
      `tokenizerVocabSize must be an integer or null, got ${describe(tokenizerVocabSize)}`,
    );
  }
  for (const [name, value] of Object.entries({ columns, training })) {
    if (value !== null && !isRecord(value)) {
      throw checkpointFault(file, `${name} must be an object or null, got ${describe(value)}`);
    }
  }
  return {
    model: checkedModel,
    dtype,
    specialIds,
    tokenizerVocabSize,
    columns,
    training,
  } as unknown as ModelFolderConfig;
}

function modelOf(file: string, model: Record<string, unknown>): ModelConfig {
  const { vocabSize, ...options } = model;
  try {
    return checkedConfig('makeModel', vocabSize as VocabSize, options);
  } catch (error) {
    throw checkpointFault(file, (error as Error).message, error);
  }
}

function checkIds(file: string, specialIds: unknown, model: ModelConfig): void {
  if (!isRecord(specialIds)) {
    throw checkpointFault(
      file,
      `specialIds must be an object or null, got ${describe(specialIds)}`,
    );
  }
  try {
    checkSpecialIds(specialIds as unknown as SpecialIds, sharedVocabSize(model));
  } catch (error) {
    throw checkpointFault(file, (error as Error).message, error);
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
