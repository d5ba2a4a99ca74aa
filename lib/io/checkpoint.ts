/** Models as folders: `model.safetensors`, `config.json` and `tokenizer.json`. */
import type { Stats } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { checkSpecialIds, type SpecialIds } from '../data/tokenizers/specialIds.js';
import { checkTokenizer, checkTokenizerFits, Tokenizer } from '../data/tokenizers/tokenizer.js';
import { makeModel } from '../nn/model/makeModel.js';
import { sharedVocabSize, vocabSizes } from '../nn/model/modelOptions.js';
import type { Transformer } from '../nn/model/transformer.js';
import { exchangePaths } from '../runtime/native/load.js';
import { checkModel } from '../nn/model/checkModel.js';
import { modelVocabSize } from '../nn/model/modelVocabulary.js';
import { withoutValues } from '../nn/module/withoutValues.js';
import type { LoadStateOptions } from '../nn/module/loadState.js';
import { setTies } from '../nn/module/ties.js';
import { checkObject, checkOptions, checkPath } from '../runtime/arguments.js';
import { checkDevice, type Device, type DeviceChoice } from '../tensor/device.js';
import type { Tensor } from '../tensor/tensor.js';
import { saveFault, writeAndFlush, type ByteSink } from './atomicFile.js';
import {
  configJson,
  looksLikeConfig,
  parseConfig,
  type JsonValue,
  type ModelDType,
  type ModelFolderConfig,
  type TranslationColumns,
} from './modelConfig.js';
import {
  checkGivenModel,
  refuseOwnModules,
  structureOf,
  warnOfOwnModules,
} from './modelStructure.js';
import { otherFormat } from './otherFormats.js';
import { ReadableFile } from './readableFile.js';
import { currentFolder, readFolder, replaceFolder } from './replaceFolder.js';
import { readSafetensors, safetensorsWriter, type SafetensorsFile } from './safetensors.js';
import { checkpointFault } from './safetensorsHeader.js';

const weightsFile = 'model.safetensors';
const configFile = 'config.json';
const tokenizerFile = 'tokenizer.json';
/** Files of a run's state beside its model; a save without them removes older ones. */
const stateFiles = ['training.json', 'training.safetensors'] as const;

/** Header of the weights: readers of other packages expect it. @internal */
export const weightsMetadata = { format: 'pt' };

/** Options of {@link saveModel}: what to save besides the model. Default: nothing. */
export interface SaveModelOptions {
  /** Saved as `tokenizer.json`; `Translator.load` needs it. */
  tokenizer?: Tokenizer;
  /** Ids of pad, bos and eos; `Translator.load` needs them. */
  specialIds?: SpecialIds;
  /** Column names of the sentence pairs. */
  columns?: TranslationColumns;
  /** Information about the training run, such as `{ epoch: 3, validationLoss: 1.25 }`. */
  training?: { readonly [key: string]: JsonValue };
}

/** Options of {@link loadModel} and `Translator.load`. */
export interface LoadModelOptions {
  /** Device of the model. Default `'cpu'`, or the current device of `model` if given. */
  device?: DeviceChoice | undefined;
  /**
   * The model to load the weights into, in its own dtype; required for a folder of a model with
   * user-defined modules, and built in the same way. Default: created by `makeModel` from the saved
   * settings.
   */
  model?: Transformer | undefined;
}

/** The result of {@link loadModel}. */
export interface LoadedModel {
  /** In eval mode; call `train()` to continue training. */
  readonly model: Transformer;
  /** Null if the folder has no `tokenizer.json`. */
  readonly tokenizer: Tokenizer | null;
  /** Content of `config.json`: options of the model, special ids, information about the run. */
  readonly config: ModelFolderConfig;
  /** The model folder that was read: for a run folder, the one inside it. */
  readonly folder: string;
}

/**
 * Saves a model created by `makeModel` as a folder that can be loaded anywhere. The folder is replaced
 * atomically once everything is on the disk: at any moment, and after any failure, it is either the
 * complete old or the complete new model. Other files in a model folder are kept.
 *
 * The weights are those at the time of the call: a change before the promise settles is an error.
 *
 * If modules of the model were replaced, the weights are saved unchanged, with a warning: `loadModel`
 * needs a model with the same modules for them. Weights tied by the user are tied again on loading.
 *
 * @throws TypeError if the model was not created by `makeModel`, or if parameters share only a part of
 *   their memory
 * @throws RangeError if the tokenizer has more ids than the model, or a special id is out of range
 * @throws TorchError ERR_CHECKPOINT if the model cannot be saved, or `folder` contains something other
 *   than a model; what was there before is unchanged
 */
export async function saveModel(
  folder: string,
  model: Transformer,
  options: SaveModelOptions = {},
): Promise<void> {
  checkPath('saveModel', 'folder', folder);
  checkModel('saveModel', model);
  const contents = modelContents('saveModel', model, options);
  try {
    // Before the first await: the weights at the time of the call are saved.
    const writeWeights = safetensorsWriter(contents.state, weightsMetadata);
    await writeModelFolder(folder, contents, writeWeights);
    contents.warn();
  } finally {
    for (const tensor of contents.state.values()) tensor.dispose();
  }
}

/** What a model folder holds. @internal */
export interface ModelContents {
  /** Views of the weights, to be disposed of by the caller. */
  readonly state: Map<string, Tensor>;
  /** Content of `config.json`. */
  readonly config: string;
  /** Content of `tokenizer.json`; null to save none. */
  readonly tokenizer: string | null;
  /** Says once, after the first save, what loading will need. */
  warn(): void;
}

/** Further files of a model folder, in which a training run keeps its state. @internal */
export interface FurtherFile {
  readonly name: (typeof stateFiles)[number];
  readonly write: (sink: ByteSink) => Promise<void>;
}

/** Checks what {@link saveModel} is given and collects it. @internal */
export function modelContents(
  owner: string,
  model: Transformer,
  options: SaveModelOptions,
): ModelContents {
  checkOptions(owner, options, ['tokenizer', 'specialIds', 'columns', 'training']);
  const { tokenizer, specialIds = null, columns = null, training = null } = options;
  const vocabSize = modelVocabSize(model);
  if (tokenizer !== undefined) {
    checkTokenizer(owner, tokenizer);
    checkTokenizerFits(owner, tokenizer, vocabSize);
  }
  if (specialIds !== null) checkSpecialIds(specialIds, vocabSize, owner);
  if (columns !== null) checkObject(owner, 'columns', columns, '{ source, target }');
  if (training !== null) checkObject(owner, 'training', training, 'an object such as { epoch: 3 }');
  const structure = structureOf(owner, model);
  const config = configJson({
    ...structure,
    dtype: dtypeOf(model),
    // Only the ids: the other results of findSpecialIds are for display.
    specialIds: specialIds && { pad: specialIds.pad, bos: specialIds.bos, eos: specialIds.eos },
    tokenizerVocabSize: tokenizer?.vocabSize ?? null,
    columns,
    training,
  });
  return {
    state: model.stateDict(),
    config,
    tokenizer: tokenizer?.toJson() ?? null,
    warn: () => warnOfOwnModules(model, structure.ownModules),
  };
}

/**
 * Replaces a model folder atomically.
 *
 * @param writeWeights writes `model.safetensors`
 * @throws TorchError ERR_CHECKPOINT as {@link saveModel}
 * @internal
 */
export async function writeModelFolder(
  folder: string,
  { config, tokenizer }: Pick<ModelContents, 'config' | 'tokenizer'>,
  writeWeights: (sink: ByteSink) => Promise<void>,
  further: readonly FurtherFile[] = [],
): Promise<void> {
  await refuseForeignFolder(folder);
  await replaceFolder(
    folder,
    [weightsFile, configFile, tokenizerFile, ...stateFiles],
    async (temporary) => {
      await writeAndFlush(join(temporary, weightsFile), writeWeights);
      await writeText(join(temporary, configFile), config);
      if (tokenizer !== null) await writeText(join(temporary, tokenizerFile), tokenizer);
      for (const { name, write } of further) await writeAndFlush(join(temporary, name), write);
      // Writing takes long enough for something else to have been put there.
      await refuseForeignFolder(folder);
    },
    exchangePaths,
  );
}

/**
 * Loads a model folder, or the `best/` model in the folder of a training run (`last/` if there is no
 * best one yet). Everything is checked: a folder that loads is complete.
 *
 * @throws TypeError if `folder` is not a path, `device` not a device or `model` not a Transformer
 * @throws TorchError ERR_CHECKPOINT naming the file and the fault; a given model is then unchanged
 */
export async function loadModel(
  folder: string,
  options: LoadModelOptions = {},
): Promise<LoadedModel> {
  checkOptions('loadModel', options, ['device', 'model']);
  checkPath('loadModel', 'folder', folder);
  const { model: given, device } = options;
  if (given !== undefined) checkModel('loadModel', given);
  const target = device === undefined ? null : checkDevice('loadModel', 'device', device);
  const found = await findModelFolder(folder);
  const { config, tokenizerText, weights } = await readFolder(found, openFiles, (files) =>
    files.weights.close(),
  );
  try {
    const configPath = join(found, configFile);
    const tokenizerPath = join(found, tokenizerFile);
    if (given === undefined) refuseOwnModules(configPath, config);
    else checkGivenModel(configPath, config, given);
    const most = given === undefined ? sharedVocabSize(config.model) : modelVocabSize(given);
    const tokenizer = parseTokenizer(tokenizerPath, tokenizerText, config, most);
    const model =
      given === undefined
        ? await buildModel(configPath, config, weights, target ?? 'cpu')
        : await fillModel(given, weights, target);
    return { model: model.eval(), tokenizer, config, folder: found };
  } finally {
    await weights.close();
  }
}

/**
 * Returns the model folder for a path: the folder itself, or `best` or else `last` in the folder of a run.
 * @throws TorchError ERR_CHECKPOINT if there is none
 */
export async function findModelFolder(folder: string): Promise<string> {
  checkPath('findModelFolder', 'folder', folder);
  const status = await statusOf(folder);
  if (status !== null && !status.isDirectory()) throw await notAFolder(folder);
  const candidates = [folder, join(folder, 'best'), join(folder, 'last')];
  for (const candidate of candidates) {
    if (await isFile(join(await currentFolder(candidate), configFile))) return candidate;
  }
  throw checkpointFault(
    folder,
    status === null
      ? 'no such folder'
      : `no model in it: there is no ${configFile}, and no best/ or last/ with one`,
  );
}

/** Null if the path does not exist. */
async function statusOf(path: string): Promise<Stats | null> {
  try {
    return await stat(path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    const reason = code === 'ENOTDIR' ? 'a part of the path is a file, not a folder' : message;
    throw checkpointFault(path, reason, error);
  }
}

/** The error for the path of a file instead of a model folder. */
async function notAFolder(path: string): Promise<Error> {
  const folder = dirname(path);
  if (await isFile(join(folder, configFile))) {
    return checkpointFault(path, `a model is the whole folder, not a file in it: pass ${folder}`);
  }
  let other: string | null = null;
  try {
    const file = await ReadableFile.open(path);
    const start = new Uint8Array(Math.min(8, await file.size()));
    await file.read(start, 0).finally(() => file.close());
    other = otherFormat(start);
  } catch {
    // The path is reported as a file below.
  }
  const kind = other ?? 'a file';
  return checkpointFault(
    path,
    `a model is a folder written by saveModel or a training run; this is ${kind}`,
  );
}

interface OpenFiles {
  readonly config: ModelFolderConfig;
  readonly tokenizerText: string | null;
  readonly weights: SafetensorsFile;
}

async function openFiles(folder: string): Promise<OpenFiles> {
  const configPath = join(folder, configFile);
  const config = parseConfig(configPath, await readText(configPath));
  const tokenizerPath = join(folder, tokenizerFile);
  const tokenizerText = (await isFile(tokenizerPath)) ? await readText(tokenizerPath) : null;
  return { config, tokenizerText, weights: await readSafetensors(join(folder, weightsFile)) };
}

function parseTokenizer(
  file: string,
  text: string | null,
  config: ModelFolderConfig,
  most: number,
): Tokenizer | null {
  if (text === null) return null;
  let tokenizer: Tokenizer;
  try {
    tokenizer = Tokenizer.fromJson(text);
  } catch (error) {
    throw checkpointFault(file, (error as Error).message, error);
  }
  if (tokenizer.vocabSize > most) {
    throw checkpointFault(
      file,
      `its vocabulary of ${tokenizer.vocabSize} is larger than the model's, ${most}`,
    );
  }
  const saved = config.tokenizerVocabSize;
  if (saved !== null && tokenizer.vocabSize !== saved) {
    throw checkpointFault(
      file,
      `it has ${tokenizer.vocabSize} ids, but ${configFile} says that the model was saved with a ` +
        `tokenizer of ${saved}; restore that one`,
    );
  }
  return tokenizer;
}

async function buildModel(
  configPath: string,
  config: ModelFolderConfig,
  weights: SafetensorsFile,
  device: Device,
): Promise<Transformer> {
  const { vocabSize, ...options } = config.model;
  checkSizes(configPath, config, weights);
  let model: Transformer;
  try {
    // The loaded weights take the place of initial ones, so none are drawn.
    model = withoutValues(() => makeModel(vocabSize, options));
  } catch (error) {
    throw configFault(configPath, error);
  }
  try {
    tieAsSaved(configPath, config, model);
    model.to({ device, dtype: config.dtype });
    await loadWeights(model, weights, device, { assign: true });
    return model;
  } catch (error) {
    model.dispose();
    throw error;
  }
}

function tieAsSaved(configPath: string, { ties }: ModelFolderConfig, model: Transformer): void {
  if (ties === null) return;
  try {
    setTies(model, ties);
  } catch (error) {
    throw configFault(configPath, error);
  }
}

/** Loads into the caller's model; it is moved only after the weights are loaded. */
async function fillModel(
  model: Transformer,
  weights: SafetensorsFile,
  device: Device | null,
): Promise<Transformer> {
  await loadWeights(model, weights, model.generator.proj.weight.device);
  return device === null ? model : model.to({ device });
}

async function loadWeights(
  model: Transformer,
  weights: SafetensorsFile,
  device: Device,
  options: LoadStateOptions = {},
): Promise<void> {
  const state = await weights.tensors({ device });
  try {
    model.loadStateDict(state, options);
  } catch (error) {
    throw checkpointFault(weights.path, (error as Error).message, error);
  } finally {
    for (const tensor of state.values()) tensor.dispose();
  }
}

/** Checks that the weights have the sizes in the config, before memory is allocated for a model. */
function checkSizes(
  configPath: string,
  { model }: ModelFolderConfig,
  weights: SafetensorsFile,
): void {
  const name = 'generator.proj.weight';
  if (!weights.has(name)) throw checkpointFault(weights.path, `no tensor named "${name}"`);
  const { shape } = weights.info(name);
  const { tgt } = vocabSizes(model);
  if (shape[0] !== tgt || shape[1] !== model.dModel) {
    throw checkpointFault(
      weights.path,
      `${name} is [${shape.join(', ')}], but ${configPath} says vocabSize ${tgt} ` +
        `and dModel ${model.dModel}`,
    );
  }
  const layers = new Set(
    weights.names.flatMap((key) => /^encoder\.layers\.(\d+)\./.exec(key)?.[1] ?? []),
  );
  if (layers.size !== model.N) {
    throw checkpointFault(
      weights.path,
      `${layers.size} encoder layers, but ${configPath} says N ${model.N}`,
    );
  }
}

/** A folder that is neither empty nor a model may be valuable: it is not replaced. */
async function refuseForeignFolder(folder: string): Promise<void> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return;
    if (code === 'ENOTDIR')
      throw checkpointFault(folder, 'a file with this name already exists', error);
    throw saveFault(folder, error);
  }
  if (names.length === 0) return;
  if (names.includes(configFile) && looksLikeConfig(await readText(join(folder, configFile))))
    return;
  throw checkpointFault(
    folder,
    `contains files but no model (${names.slice(0, 5).join(', ')}${names.length > 5 ? ', …' : ''}); ` +
      'nothing was saved, choose another folder',
  );
}

function dtypeOf(model: Transformer): ModelDType {
  return model.generator.proj.weight.dtype as ModelDType;
}

/** Converts argument errors of the library, caused by values from a config. */
function configFault(configPath: string, error: unknown): unknown {
  if (!(error instanceof TypeError || error instanceof RangeError)) return error;
  return checkpointFault(configPath, error.message, error);
}

async function writeText(path: string, text: string): Promise<void> {
  await writeAndFlush(path, (sink) => sink(Buffer.from(text)));
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw checkpointFault(path, code === 'ENOENT' ? 'no such file' : message, error);
  }
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (status) => status.isFile(),
    () => false,
  );
}
