/** Saves a run while it goes on: the values are copied, then written while the next steps are taken. */
import { readdir, readFile, rm } from 'node:fs/promises';
import { freemem } from 'node:os';
import { join } from 'node:path';
import {
  modelContents,
  type ModelContents,
  weightsMetadata,
  writeModelFolder,
  type FurtherFile,
  type SaveModelOptions,
} from '../../io/checkpoint.js';
import { safetensorsWriter } from '../../io/safetensors.js';
import type { Transformer } from '../../nn/model/transformer.js';
import { TorchError } from '../../runtime/errors.js';
import { callAsync } from '../../tensor/dispatch.js';
import { noGrad } from '../../tensor/autograd.js';
import { keep } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import type { CheckpointEvent } from './events.js';
import type { RunFolder } from './runFolder.js';
import { bytesOf, trainingFiles, type TrainingState } from './trainingState.js';

/** Which models are kept in `checkpoints/`. */
export interface Retention {
  /** The latest ones. */
  readonly last: number;
  /** Those with the best validations. */
  readonly best: number;
}

/** What is saved at one moment of a run. */
export interface SaveRequest {
  readonly step: number;
  readonly epoch: number;
  /** Of the validation at this step; null without one. Higher is better. */
  readonly score: number | null;
  /** Whether the model may be kept in `checkpoints/`. */
  readonly keeps: boolean;
  /** Saves this model as the best, and is told whether it could be saved; null if it is not. */
  readonly onBest: ((saved: boolean) => void) | null;
  readonly model: SaveModelOptions;
  readonly state: TrainingState;
  /** Tensors of the state, which stay the caller's. */
  readonly tensors: ReadonlyMap<string, Tensor>;
  /** What `best/` and `checkpoints/` hold if it is not the model itself; its views stay the caller's. */
  readonly best: Pick<ModelContents, 'state' | 'config'> | null;
}

type Tensors = ReadonlyMap<string, Tensor>;

/**
 * Saves the results of a run. A failed save does not end the training: what was saved before is kept,
 * and the disk may have space again after the next one. Only at the end is it an error.
 */
export class RunSaver {
  readonly #folder: RunFolder;
  readonly #retention: Retention;
  readonly #say: (message: string) => void;
  readonly #saved: (event: CheckpointEvent) => Promise<void>;
  /** The save being written. It never rejects. */
  #writing: Promise<void> = Promise.resolve();
  /** Why the latest state could not be saved; null if it was saved. */
  #fault: TorchError | null = null;
  /** An error that ends the training: another run has the folder, or a listener failed. */
  #error: { readonly error: unknown } | null = null;

  constructor(
    folder: RunFolder,
    retention: Retention,
    say: (message: string) => void,
    saved: (event: CheckpointEvent) => Promise<void>,
  ) {
    this.#folder = folder;
    this.#retention = retention;
    this.#say = say;
    this.#saved = saved;
  }

  /**
   * Copies what is to be saved, and writes it while training continues. If the copies would take more
   * than half of the free memory, it writes the values themselves and training waits.
   *
   * @throws TorchError ERR_CHECKPOINT if another training run has taken over the folder
   */
  async save(model: Transformer, request: SaveRequest): Promise<void> {
    await this.settled();
    await this.#folder.checkLock();
    const start = performance.now();
    const contents = modelContents('Trainer.fit', model, request.model);
    const { best: other, tensors } = request;
    const groups: (Tensors | null)[] = [contents.state, tensors, other?.state ?? null];
    const bytes = groups.reduce((sum, group) => sum + (group === null ? 0 : bytesOf(group)), 0);
    const copies = bytes > freemem() / 2 ? null : new Copies();
    try {
      const held = async (given: Tensors) => (await copies?.of(given)) ?? given;
      const weights = await held(contents.state);
      const state = await held(tensors);
      const best = {
        config: other?.config ?? contents.config,
        state: other === null ? weights : await held(other.state),
      };
      const files = trainingFiles(request.state, state);
      const written = this.#write(request, { ...contents, weights, best, files, start });
      this.#writing = written
        .catch((error: unknown) => {
          this.#error ??= { error };
        })
        .finally(() => {
          copies?.dispose();
          // A merged copy of the model is what people load.
          if (other === null) contents.warn();
        });
      if (copies === null) await this.settled();
    } catch (error) {
      copies?.dispose();
      throw error;
    } finally {
      for (const tensor of contents.state.values()) tensor.dispose();
    }
  }

  /** Waits for the save being written. @throws what ended it, if training cannot go on */
  async settled(): Promise<void> {
    await this.#writing;
    if (this.#error === null) return;
    const { error } = this.#error;
    this.#error = null;
    throw error;
  }

  /** @throws TorchError ERR_CHECKPOINT if the latest state was not saved */
  async finish(step: number): Promise<void> {
    await this.settled();
    if (this.#fault === null) return;
    throw new TorchError(
      'ERR_CHECKPOINT',
      `Trainer.fit: the state after step ${step} was not saved: ${this.#fault.message}. The model is ` +
        'still in memory: saveModel(folder, trainer.model, …) saves it elsewhere',
      { cause: this.#fault },
    );
  }

  async #write(
    { step, epoch, onBest, score, keeps }: SaveRequest,
    contents: {
      readonly config: string;
      readonly tokenizer: string | null;
      readonly weights: Tensors;
      readonly best: { readonly config: string; readonly state: Tensors };
      readonly files: readonly FurtherFile[];
      readonly start: number;
    },
  ): Promise<void> {
    const { config, tokenizer, weights, best, files } = contents;
    const last = { config, state: weights };
    const write = async (
      kind: CheckpointEvent['kind'],
      folder: string,
      saved: { readonly config: string; readonly state: Tensors },
      further: readonly FurtherFile[] = [],
    ) => {
      const { state } = saved;
      const done = await this.attempt(async () => {
        const writeWeights = safetensorsWriter(state, weightsMetadata);
        await writeModelFolder(folder, { config: saved.config, tokenizer }, writeWeights, further);
      });
      if (done !== null) return done;
      const seconds = (performance.now() - contents.start) / 1000;
      await this.#saved({ step, epoch, kind, folder, bytes: bytesOf(state), seconds });
      return null;
    };
    if (onBest !== null) onBest((await write('best', this.#folder.best, best)) === null);
    const retained = this.#retention;
    if (keeps && (retained.last > 0 || (retained.best > 0 && score !== null))) {
      await write('kept', this.#folder.checkpoint(step), best);
      await this.#prune();
    }
    // Only now: a run that is killed before resumes from the older state, and does all of it again.
    this.#fault = await write('last', this.#folder.last, last, files);
  }

  /** Removes checkpoints that are neither among the latest nor among the best. */
  async #prune(): Promise<void> {
    const found: { step: number; path: string; score: number }[] = [];
    const names = await readdir(this.#folder.checkpoints).catch(() => [] as string[]);
    for (const name of names) {
      const step = this.#folder.stepOf(name);
      if (step === null) continue;
      const path = join(this.#folder.checkpoints, name);
      found.push({ step, path, score: await scoreIn(path) });
    }
    const latest = [...found].sort((a, b) => b.step - a.step).slice(0, this.#retention.last);
    const best = [...found]
      .filter(({ score }) => Number.isFinite(score))
      .sort((a, b) => b.score - a.score || a.step - b.step)
      .slice(0, this.#retention.best);
    const kept = new Set([...latest, ...best]);
    for (const one of found) {
      if (!kept.has(one)) await rm(one.path, { recursive: true, force: true });
    }
  }

  /**
   * Saves something of the run.
   * @returns the error of a save; null if it succeeded
   */
  async attempt(save: () => Promise<void>): Promise<TorchError | null> {
    await this.#folder.checkLock();
    try {
      await save();
      return null;
    } catch (error) {
      if (!(error instanceof TorchError) || error.code !== 'ERR_CHECKPOINT') throw error;
      this.#say(`warning: ${error.message}`);
      return error;
    }
  }
}

/** Copies of tensors in memory, made on the thread that also runs the optimizer's steps. */
class Copies {
  readonly #made = new Map<Tensor, Tensor>();

  async of(tensors: Tensors): Promise<Tensors> {
    const copies = new Map<string, Tensor>();
    for (const [name, tensor] of tensors) {
      let copy = this.#made.get(tensor);
      if (copy === undefined) {
        copy = keep(await cloned(tensor));
        this.#made.set(tensor, copy);
      }
      copies.set(name, copy);
    }
    return copies;
  }

  dispose(): void {
    for (const copy of this.#made.values()) copy.dispose();
    this.#made.clear();
  }
}

async function cloned(tensor: Tensor): Promise<Tensor> {
  const source = noGrad(() => tensor.detach());
  try {
    const onCpu = tensor.device === 'cpu';
    return (await (onCpu
      ? callAsync('aten::clone', source)
      : callAsync('aten::_to_copy', source, { device: 'cpu' }))) as Tensor;
  } finally {
    source.dispose();
  }
}

/** The score in a checkpoint's config, as saved with it; NaN if there is none. */
async function scoreIn(folder: string): Promise<number> {
  try {
    const config = JSON.parse(await readFile(join(folder, 'config.json'), 'utf8')) as {
      training?: { score?: unknown } | null;
    };
    const score = config.training?.score;
    return typeof score === 'number' ? score : NaN;
  } catch {
    return NaN;
  }
}
