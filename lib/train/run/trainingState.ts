/**
 * What a run needs besides the weights to continue to the bit: `training.json` and
 * `training.safetensors` in `last/`.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FurtherFile } from '../../io/checkpoint.js';
import type { JsonValue } from '../../io/modelConfig.js';
import { currentFolder } from '../../io/replaceFolder.js';
import { readSafetensors, safetensorsWriter } from '../../io/safetensors.js';
import { checkpointFault } from '../../io/safetensorsHeader.js';
import { byteSize } from '../../tensor/dtype.js';
import type { Tensor } from '../../tensor/tensor.js';
import type { RunProgressState } from './runProgress.js';
import type { Settings } from './settings.js';

const formatName = 'torchformer-training';
/** Raised when an older release could not continue what this one saves. */
const formatVersion = 1;

/** The plain values of a run's state. */
export interface TrainingState {
  /** What the run was started with. */
  readonly settings: Settings;
  /** The limits it was last given. */
  readonly limits: Settings;
  /** Threads of libtorch: with another number, sums may differ in their last bits. */
  readonly threads: number;
  readonly progress: RunProgressState;
  /** Settings of the optimizer's groups. */
  readonly groups: JsonValue;
  /** Updates of the averaged weights; 0 without. */
  readonly averageUpdates: number;
  /** Of float16; null without. */
  readonly lossScale: { readonly value: number; readonly good: number } | null;
}

/** A state that was read, with its tensors, which the caller disposes of. */
export interface SavedTraining {
  readonly state: TrainingState;
  /** `optimizer.<index>.<name>`, `random`, `average.<name>`. */
  readonly tensors: ReadonlyMap<string, Tensor>;
}

/** Bytes of the tensors in memory. */
export function bytesOf(tensors: ReadonlyMap<string, Tensor>): number {
  let bytes = 0;
  for (const tensor of tensors.values()) bytes += tensor.numel * byteSize(tensor.dtype);
  return bytes;
}

/** The files of a state. */
export function trainingFiles(
  state: TrainingState,
  tensors: ReadonlyMap<string, Tensor>,
): FurtherFile[] {
  const text = `${JSON.stringify({ format: formatName, formatVersion, ...state }, null, 2)}\n`;
  return [
    { name: 'training.json', write: (sink) => sink(Buffer.from(text)) },
    { name: 'training.safetensors', write: safetensorsWriter(tensors, {}) },
  ];
}

/**
 * Reads the state in a model folder.
 *
 * @returns null if there is no such folder
 * @throws TorchError ERR_CHECKPOINT if the folder has no state, or a broken one
 */
export async function readTraining(folder: string): Promise<SavedTraining | null> {
  const found = await currentFolder(folder);
  const path = join(found, 'training.json');
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT') throw checkpointFault(path, message, error);
    if (!(await exists(join(found, 'config.json')))) return null;
    throw checkpointFault(
      folder,
      'it has a model, but no training.json to resume from: it was saved by an older version, or not ' +
        'by a training run. Start a new run from its weights instead',
    );
  }
  const state = parsed(path, text);
  await using file = await readSafetensors(join(found, 'training.safetensors'));
  return { state, tensors: await file.tensors() };
}

function parsed(path: string, text: string): TrainingState {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw checkpointFault(path, `not valid JSON: ${(error as Error).message}`, error);
  }
  const given = value as Partial<TrainingState> & { format?: unknown; formatVersion?: unknown };
  if (typeof value !== 'object' || value === null || given.format !== formatName) {
    throw checkpointFault(path, `not the state of a training run: format must be "${formatName}"`);
  }
  if (given.formatVersion !== formatVersion) {
    throw checkpointFault(
      path,
      `its formatVersion is ${String(given.formatVersion)}, but this release reads ${formatVersion}; ` +
        'resume it with the release that saved it',
    );
  }
  for (const name of ['settings', 'limits', 'progress', 'groups'] as const) {
    if (typeof given[name] !== 'object' || given[name] === null) {
      throw checkpointFault(path, `"${name}" is missing`);
    }
  }
  return given as TrainingState;
}

async function exists(path: string): Promise<boolean> {
  return readFile(path).then(
    () => true,
    () => false,
  );
}
