/** `config.json` of a model folder: everything besides the weights that defines the model. */
import { checkSpecialIds, type SpecialIds } from '../data/tokenizers/specialIds.js';
import { checkedConfig, sharedVocabSize } from '../nn/model/modelOptions.js';
import type { ModelConfig, VocabSize } from '../nn/model/modelOptions.js';
import type { Ties } from '../nn/module/ties.js';
import { describe } from '../runtime/arguments.js';
import { checkpointFault } from './safetensorsHeader.js';

const formatName = 'torchformer-model';
/** Version of configs with {@link ModelFolderConfig.ties} or `ownModules`, which version 1 lacks. */
const formatVersion = 2;

/** Names of the columns that a model was trained on. */
export interface TranslationColumns {
  /** The column that the model translates from, such as `'en'`. */
  source: string;
  /** The column that it translates to, such as `'zh'`. */
  target: string;
}

/** Any JSON value. */
export type JsonValue =
  null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** The dtypes of saved models. */
export type ModelDType = 'float32' | 'float64' | 'float16' | 'bfloat16';
const modelDTypes: readonly string[] = ['float32', 'float64', 'float16', 'bfloat16'];

/** The content of a model folder's `config.json`. */
export interface ModelFolderConfig {
  /** All options of `makeModel`, and the vocabulary sizes. */
  readonly model: ModelConfig;
  /** The dtype of the saved weights. */
  readonly dtype: ModelDType;
  /** Ids of pad, bos and eos; null if saved without. */
  readonly specialIds: SpecialIds | null;
  /** Vocabulary size of the tokenizer saved with it; null if none, or if saved by an older version. */
  readonly tokenizerVocabSize: number | null;
  /** Column names of the sentence pairs; null if saved without. */
  readonly columns: TranslationColumns | null;
  /** Information about the training run, such as epoch and losses; null if saved without. */
  readonly training: { readonly [key: string]: JsonValue } | null;
  /**
   * Groups of names of tied parameters, if they differ from the result of the option `tie`; otherwise
   * null.
   */
  readonly ties: Ties | null;
  /**
   * Names of the modules that differ from those that `makeModel` creates: `loadModel` needs a model with
   * such modules to load into. Usually empty.
   */
  readonly ownModules: readonly string[];
}

/**
 * Returns the text of `config.json`. Keys of version 2 are written only if needed, so that older
 * releases can read all other models.
 */
export function configJson({ ties, ownModules, ...config }: ModelFolderConfig): string {
  const added = {
    ...(ties === null ? {} : { ties }),
    ...(ownModules.length === 0 ? {} : { ownModules }),
  };
  const version = Object.keys(added).length === 0 ? 1 : formatVersion;
  const content = { format: formatName, formatVersion: version, ...config, ...added };
  return `${JSON.stringify(content, null, 2)}\n`;
}

/** Whether a text is a `config.json` written by this library, even if it is damaged. */
export function looksLikeConfig(text: string): boolean {
  return text.includes(`"${formatName}"`);
}

/**
 * Reads `config.json`. Missing model options, which older releases did not write, default to those of
 * seed 001.
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
      `not the config of a model saved here: its format is not "${formatName}"`,
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
  const { ties = null, ownModules = [] } = parsed;
  if (!isRecord(model))
    throw checkpointFault(file, `model must be an object, got ${describe(model)}`);
  if (typeof dtype !== 'string' || !modelDTypes.includes(dtype)) {
    throw checkpointFault(
      file,
      `dtype must be one of ${modelDTypes.join(', ')}, got ${describe(dtype)}`,
    );
  }
  const checkedModel = modelOf(file, model);
  if (!isList(ownModules, isText)) {
    throw checkpointFault(file, `ownModules must be names, got ${describe(ownModules)}`);
  }
  if (ties !== null && !isList(ties, (names) => isList(names, isText))) {
    throw checkpointFault(file, `ties must be lists of names or null, got ${describe(ties)}`);
  }
  // A model with user-defined modules may have a vocabulary size other than in its settings.
  const vocabSize = ownModules.length > 0 ? Number.MAX_SAFE_INTEGER : sharedVocabSize(checkedModel);
  if (specialIds !== null) checkIds(file, specialIds, vocabSize);
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
    ties,
    ownModules,
  } as unknown as ModelFolderConfig;
}

function modelOf(file: string, model: Record<string, unknown>): ModelConfig {
  const { vocabSize, ...options } = model;
  try {
    // The default of seed 001, which does not depend on the other dropout.
    const complete = { attentionDropout: 0.1, ...options };
    return checkedConfig('makeModel', vocabSize as VocabSize, complete);
  } catch (error) {
    throw checkpointFault(file, (error as Error).message, error);
  }
}

function checkIds(file: string, specialIds: unknown, vocabSize: number): void {
  if (!isRecord(specialIds)) {
    throw checkpointFault(
      file,
      `specialIds must be an object or null, got ${describe(specialIds)}`,
    );
  }
  try {
    checkSpecialIds(specialIds as unknown as SpecialIds, vocabSize);
  } catch (error) {
    throw checkpointFault(file, (error as Error).message, error);
  }
}

function isList(value: unknown, holds: (item: unknown) => boolean): value is unknown[] {
  return Array.isArray(value) && value.every(holds);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
