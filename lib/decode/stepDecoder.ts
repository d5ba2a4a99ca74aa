/** The core of a search: a batch of unfinished targets that grows by one token at a time. */
import { TorchError } from '../runtime/errors.js';
import { checkInteger } from '../runtime/arguments.js';
import { noGrad } from '../tensor/autograd.js';
import { checkTensor } from '../tensor/check.js';
import { cat, full } from '../tensor/create.js';
import { keep, tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';
import { checkIds } from '../nn/check.js';
import { subsequentMask } from '../nn/attention/mask.js';
import type { Transformer } from '../nn/model/transformer.js';
import { checkModel } from '../nn/model/checkModel.js';

/**
 * The interface that a search (greedy, beam) requires of a model. Rows are the unfinished targets; all
 * have the same length. An implementation may keep caches between calls.
 */
export interface StepDecoder {
  /** Log-probabilities of the next token, `[rows, vocabulary]`; the caller disposes of them. */
  next(): Tensor;
  /** Appends one token to each row: `tokens` int64 `[rows]`. */
  append(tokens: Tensor): void;
  /**
   * Replaces row i with the previous row `rows[i]`: drops finished rows, and lets a beam continue from
   * another row. `rows` int64 `[new rows]`.
   */
  select(rows: Tensor): void;
  /** Frees its tensors. */
  dispose(): void;
}

/**
 * The simple implementation: the encoder runs once, the decoder runs over the whole target at every
 * step. It is the reference for faster implementations.
 */
export class RecomputingStepDecoder implements StepDecoder {
  readonly #model: Transformer;
  /** Encoder output, `[rows, S, D]`. */
  #memory: Tensor;
  /** bool `[rows, 1, S]` */
  #srcMask: Tensor;
  /** int64 `[rows, T]` */
  #target: Tensor;

  /**
   * @param src source ids, int64 `[B, S]`
   * @param srcMask bool `[B, 1, S]`, true where a token may be attended
   * @param bos the id each target starts with
   * @throws TypeError, RangeError if an argument is invalid
   */
  constructor(model: Transformer, src: Tensor, srcMask: Tensor, bos: number) {
    const owner = 'RecomputingStepDecoder';
    checkModel(owner, model);
    checkIds(owner, 'src', src, 2);
    checkTensor(owner, 'srcMask', srcMask);
    checkInteger(owner, 'bos', bos, 0, model.generator.proj.outFeatures - 1);
    this.#model = model;
    this.#memory = own(() => model.encode(src, srcMask));
    this.#srcMask = own(() => srcMask.clone());
    this.#target = own(() =>
      full([src.shape[0] as number, 1], bos, { dtype: 'int64', device: src.device }),
    );
  }

  /** @throws TorchError ERR_DISPOSED after {@link RecomputingStepDecoder.dispose} */
  next(): Tensor {
    this.#refuseDisposed('next');
    return quietly(() => {
      const length = this.#target.shape[1] as number;
      const mask = subsequentMask(length, { device: this.#target.device });
      const hidden = this.#model.decode(this.#memory, this.#srcMask, this.#target, mask);
      return this.#model.generator.forward(hidden.select(1, length - 1));
    });
  }

  append(tokens: Tensor): void {
    this.#refuseDisposed('append');
    checkIds('RecomputingStepDecoder.append', 'tokens', tokens);
    this.#target = replaced(this.#target, (target) => cat([target, tokens.unsqueeze(1)], 1));
  }

  select(rows: Tensor): void {
    this.#refuseDisposed('select');
    checkIds('RecomputingStepDecoder.select', 'rows', rows);
    this.#memory = replaced(this.#memory, (memory) => memory.indexSelect(0, rows));
    this.#srcMask = replaced(this.#srcMask, (mask) => mask.indexSelect(0, rows));
    this.#target = replaced(this.#target, (target) => target.indexSelect(0, rows));
  }

  dispose(): void {
    this.#memory.dispose();
    this.#srcMask.dispose();
    this.#target.dispose();
  }

  #refuseDisposed(method: string): void {
    if (!this.#target.isDisposed) return;
    throw new TorchError(
      'ERR_DISPOSED',
      `RecomputingStepDecoder.${method}: the decoder has been disposed of; create a new one`,
    );
  }
}

/** Runs without gradients and keeps only the result. */
function quietly(make: () => Tensor): Tensor {
  return tidy(() => noGrad(make));
}

/** Keeps the result: the decoder's state outlives the scope of one search step. */
function own(make: () => Tensor): Tensor {
  return keep(quietly(make));
}

function replaced(old: Tensor, make: (old: Tensor) => Tensor): Tensor {
  const result = own(() => make(old));
  old.dispose();
  return result;
}
