/** Reading parts of a model folder without building the model. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Tokenizer } from '../data/tokenizers/tokenizer.js';
import { findModelFolder } from './checkpoint.js';
import { parseConfig, type ModelFolderConfig } from './modelConfig.js';
import { readFolder } from './replaceFolder.js';
import { readSafetensors, type SafetensorsFile } from './safetensors.js';
import { checkpointFault } from './safetensorsHeader.js';

/** An open model folder; close `weights` after use. */
export interface OpenModelFolder {
  /** The model folder: of a run folder, the one inside it. */
  readonly folder: string;
  readonly config: ModelFolderConfig;
  /** Content of `tokenizer.json`; null if there is none. */
  readonly tokenizerText: string | null;
  readonly weights: SafetensorsFile;
}

/**
 * Opens a model folder, or that of the best or last model in the folder of a run. The files belong
 * together, also if the folder is replaced in the meantime.
 *
 * @throws TorchError ERR_CHECKPOINT naming the file and the fault
 */
export async function openModelFolder(path: string): Promise<OpenModelFolder> {
  const folder = await findModelFolder(path);
  return await readFolder(
    folder,
    async (place) => {
      const config = await readConfig(place);
      const tokenizerText = await textOf(join(place, 'tokenizer.json'));
      const weights = await readSafetensors(join(place, 'model.safetensors'));
      return { folder, config, tokenizerText, weights };
    },
    ({ weights }) => weights.close(),
  );
}

/** The config of a model folder. @throws TorchError ERR_CHECKPOINT naming the file and the fault */
export async function readConfig(folder: string): Promise<ModelFolderConfig> {
  const path = join(folder, 'config.json');
  const text = await textOf(path);
  if (text === null) throw checkpointFault(path, 'no such file');
  return parseConfig(path, text);
}

/** The tokenizer of a model folder; null without one. @throws TorchError ERR_CHECKPOINT */
export function tokenizerOf({ folder, tokenizerText }: OpenModelFolder): Tokenizer | null {
  if (tokenizerText === null) return null;
  try {
    return Tokenizer.fromJson(tokenizerText);
  } catch (error) {
    throw checkpointFault(join(folder, 'tokenizer.json'), (error as Error).message, error);
  }
}

async function textOf(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    throw checkpointFault(path, message, error);
  }
}
