/** Checks before the first step that a run's models will fit on the disk. */
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
  /** Names of the model folders to be saved: `last`, and with validation `best`. */
  readonly models: readonly string[];
}

/** Bytes besides the weights: config, tokenizer, and the header of the weights. */
const otherFiles = 16 * 1024;

/** Size in bytes of a model's weights when saved. */
export function weightBytes(model: Transformer): number {
  const state = [...model.stateDict().values()];
  const bytes = state.map((tensor) => tensor.numel * byteSize(tensor.dtype));
  // Disposed of only now: tied weights occur more than once.
  for (const tensor of state) tensor.dispose();
  return bytes.reduce((sum, size) => sum + size, 0);
}

/**
 * @param present model folders of an earlier run, which will be removed
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
      `${folder}: model.safetensors will take ${size(weights)}, but files of this process are limited to ` +
        `${size(largest)} (ulimit -f); raise the limit, or use a smaller model`,
    );
  }
  const free = await freeBytes(folder);
  if (free === null) return;
  let room = free;
  for (const name of present) room += await bytesIn(join(folder, name));
  const each = weights + otherFiles;
  // A new model is complete before the old one is removed.
  const needed = each * (models.length + 1);
  if (needed <= room) return;
  const names = models.map((name) => `${name}/`).join(' and ');
  throw new TorchError(
    'ERR_CHECKPOINT',
    `${folder}: saving needs ${size(needed)} (${names}, and a copy while one is replaced, ` +
      `${size(each)} each), but the disk has ${size(room)} free; free some space, or choose a folder on ` +
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
