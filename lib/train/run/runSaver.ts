import type { SaveModelOptions } from '../../io/checkpoint.js';
import type { Transformer } from '../../nn/model/transformer.js';
import { TorchError } from '../../runtime/errors.js';
import type { History } from './history.js';
import type { RunFolder } from './runFolder.js';

/**
 * Saves the results of a run. A failed save does not end the training: what was saved before is kept,
 * and the disk may have space again after the next epoch. Only at the end is it an error.
 */
export class RunSaver {
  readonly #folder: RunFolder;
  readonly #say: (message: string) => void;
  /** Why the latest state could not be saved; null if it was saved. */
  #fault: TorchError | null = null;

  constructor(folder: RunFolder, say: (message: string) => void) {
    this.#folder = folder;
    this.#say = say;
  }

  /**
   * @returns whether it was saved
   * @throws TorchError ERR_CHECKPOINT if another training run has taken over the folder
   */
  async saveBest(model: Transformer, options: SaveModelOptions): Promise<boolean> {
    return (await this.#attempt(() => this.#folder.save('best', model, options))) === null;
  }

  /** Also saves the history, even if saving the model fails. @throws as {@link saveBest} */
  async saveLast(model: Transformer, options: SaveModelOptions, history: History): Promise<void> {
    const fault = await this.#attempt(() => this.#folder.save('last', model, options));
    const faultOfReports = await this.#attempt(() => this.#folder.saveReports(history));
    this.#fault = fault ?? faultOfReports;
  }

  /** @throws TorchError ERR_CHECKPOINT if the latest {@link saveLast} failed */
  refuseFailure(step: number): void {
    if (this.#fault === null) return;
    throw new TorchError(
      'ERR_CHECKPOINT',
      `Trainer.fit: the state after step ${step} was not saved: ${this.#fault.message}. The model is ` +
        'still in memory: saveModel(folder, trainer.model, …) saves it elsewhere',
      { cause: this.#fault },
    );
  }

  /** @returns the error of the save; null if it succeeded */
  async #attempt(save: () => Promise<void>): Promise<TorchError | null> {
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
