/** Whether a run's models will fit: better to know before the first step than after hours. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Transformer } from '../../nn/model/transformer.js';
import { freeBytes, largestFile, size } from '../../runtime/diskSpace.js';
import { TorchError } from '../../runtime/errors.js';
import { byteSize } from '../../tensor/dtype.js';

/** What a run will save. */
export interface NeededRoom {
  /** Bytes of one model's weights. */
  readonly weights: number;
  /** Names of the model folders that there will be: `last`, and with validation `best`. */
  readonly models: readonly string[];
}

/** Beside the weights: config, tokenizer, and the header of the weights. */
const otherFiles = 16 * 1024;

/** Bytes of the weights of a model as they are saved. */
export function weightBytes(model: Transformer): number {
  const state = [...model.stateDict().values()];
  const bytes = state.map((tensor) => tensor.numel * byteSize(tensor.dtype));
  // Only now: tied weights come more than once.
  for (const tensor of state) tensor.dispose();
  return bytes.reduce((sum, size) => sum + size, 0);
}

/**
 * @param present model folders of an earlier run, which will go
 * @throws TorchError ERR_CHECKPOINT with the sizes
 */
export async function checkRoom(
  folder: string,
  present: readonly string[],
  { weights, models }: NeededRoom,
): Promise<void> {
  const largest = await largestFile();
  if (weights > largest) {
    throw new TorchError(
      'ERR_CHECKPOINT',
      `${folder}: model.safetensors will have ${size(weights)}, and files of this process may have ` +
        `${size(largest)} (ulimit -f); raise that limit, or take a smaller model`,
    );
  }
  const free = await freeBytes(folder);
  if (free === null) return;
  let room = free;
  for (const name of present) room += await bytesIn(join(folder, name));
  const each = weights + otherFiles;
  // A new model is complete before the old one goes.
  const needed = each * (models.length + 1);
  if (needed <= room) return;
  const names = models.map((name) => `${name}/`).join(' and ');
  throw new TorchError(
    'ERR_CHECKPOINT',
    `${folder}: saving needs ${size(needed)} (${names}, and a copy while one is replaced, ` +
      `${size(each)} each), and the disk has ${size(room)} free; make room, or choose a folder on ` +
      'another disk',
  );
}

async function bytesIn(folder: string): Promise<number> {
  let bytes = 0;
  for (const name of await readdir(folder).catch(() => [])) {
    const status = await stat(join(folder, name)).catch(() => null);
    if (status?.isFile() === true) bytes += status.size;
  }
  return bytes;
}
