/** The folder of a training run: its models, its history and the plot of its losses. */
import { open, readdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../../runtime/makeFolder.js';
import { saveFault, writeFileAtomically } from '../../io/atomicFile.js';
import {
  isStale,
  releaseTemporary,
  removeStaleTemporaries,
  temporarySibling,
} from '../../io/temporary.js';
import { TorchError } from '../../runtime/errors.js';
import { lockRun, type RunLock } from './runLock.js';
import { checkRoom, type NeededRoom } from './runRoom.js';
import { historyJson, type History } from './history.js';
import { lossCurve } from './lossCurve.js';

/** Paths and writers of `out`: `best/`, `last/`, `history.json`, `loss.svg`. */
export class RunFolder {
  readonly path: string;
  /** The lock of this training while it runs. */
  #lock: RunLock | null = null;

  constructor(path: string) {
    this.path = path;
  }

  /** Model folder of the best epoch. */
  get best(): string {
    return join(this.path, 'best');
  }

  /** Model folder of the latest epoch, or of the step after which the run was stopped. */
  get last(): string {
    return join(this.path, 'last');
  }

  /** The events of the run, a line each. */
  get log(): string {
    return join(this.path, 'log.jsonl');
  }

  /** Folder of the models that are kept besides. */
  get checkpoints(): string {
    return join(this.path, 'checkpoints');
  }

  /** Model folder of a step: names sort as their steps do. */
  checkpoint(step: number): string {
    return join(this.checkpoints, `step-${String(step).padStart(8, '0')}`);
  }

  /** The step of a model folder in `checkpoints/`; null for other names. */
  stepOf(name: string): number | null {
    const [, digits] = /^step-(\d{8,})$/.exec(name) ?? [];
    return digits === undefined ? null : Number(digits);
  }

  /** Names of the models of an earlier run in this folder. */
  async models(): Promise<string[]> {
    const names = await readdir(this.path).catch(() => [] as string[]);
    return names.filter((name) => ['best', 'last', 'checkpoints'].includes(name)).sort();
  }

  /** Removes what killed processes left of unfinished saves, and models of later steps. */
  async clean(step: number): Promise<void> {
    for (const target of [this.best, this.last]) await removeStaleTemporaries(target);
    for (const name of await readdir(this.checkpoints).catch(() => [] as string[])) {
      const path = join(this.checkpoints, name);
      const found = this.stepOf(name);
      if (found === null ? isStale(path) : found > step) {
        await rm(path, { recursive: true, force: true });
      }
    }
  }

  /**
   * Creates the folder and locks it against other training runs.
   *
   * @throws TorchError ERR_CHECKPOINT, also if another training run uses it
   */
  async lock(): Promise<void> {
    try {
      await makeFolder(this.path);
      this.#lock = await lockRun(this.path, this.path);
    } catch (error) {
      if (error instanceof TorchError) throw error;
      throw saveFault(this.path, error);
    }
  }

  /**
   * Ensures that another training run's models are not replaced.
   * @throws TorchError ERR_CHECKPOINT if the lock is lost
   */
  async checkLock(): Promise<void> {
    await this.#lock?.check();
  }

  /** Releases the lock. */
  async release(): Promise<void> {
    await this.#lock?.release();
    this.#lock = null;
  }

  /**
   * Checks whether a run can be saved here, without leaving anything behind.
   *
   * @throws TorchError ERR_CHECKPOINT, also if another training run uses it
   */
  async check(): Promise<void> {
    let made: string[] = [];
    try {
      made = await makeFolder(this.path);
      await this.lock();
      await this.release();
    } catch (error) {
      throw saveFault(this.path, error);
    } finally {
      for (const folder of made.reverse()) await rmdir(folder).catch(() => undefined);
    }
  }

  /**
   * Creates the folder and tries to write to it, to fail now rather than after the first epoch.
   *
   * @param overwrite whether to remove the models of an earlier run; they are removed now, since an
   *   old `best/` next to a new `last/` would be taken for this run's
   * @param needed what will be saved
   * @throws TorchError ERR_CHECKPOINT, also if there is not enough disk space
   */
  async prepare(overwrite: boolean, needed: NeededRoom): Promise<void> {
    const old = await this.models();
    if (old.length > 0 && !overwrite) {
      throw new TorchError(
        'ERR_CHECKPOINT',
        `${this.path} has the models of an earlier run (${old.map((name) => `${name}/`).join(', ')}); ` +
          'choose another folder, or overwrite them (overwrite: true)',
      );
    }
    try {
      await makeFolder(this.path);
      await checkRoom(this.path, old, needed);
      for (const name of old) await rm(join(this.path, name), { recursive: true });
      const probe = temporarySibling(this.last);
      await (await open(probe, 'wx')).close();
      await rm(probe);
      releaseTemporary(probe);
    } catch (error) {
      throw saveFault(this.path, error);
    }
  }

  async saveReports(history: History): Promise<void> {
    await writeText(join(this.path, 'history.json'), historyJson(history));
    await writeText(join(this.path, 'loss.svg'), lossCurve(history));
  }
}

async function writeText(path: string, text: string): Promise<void> {
  await writeFileAtomically(path, (sink) => sink(Buffer.from(text)));
}
