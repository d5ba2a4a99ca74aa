import { checkInstance, checkObject } from '../../runtime/arguments.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkIds } from '../check.js';
import { Sequential } from '../module/containers.js';
import type { ModelBlueprint } from './blueprint.js';
import type { Decoder } from './decoder.js';
import { embedPacked } from '../packed/embedPacked.js';
import type { Encoder } from './encoder.js';
import type { Generator } from './generator.js';
import type { ModelConfig } from './modelOptions.js';
import { Module } from '../module/module.js';
import type { TensorModule } from '../module/module.js';
import { PackedMask, PackedSequences } from '../packed/packedSequences.js';
import { isPositionTable } from '../layers/positionTable.js';

/** The input of {@link Transformer.forwardPacked}. */
export interface PackedInput {
  /** Source ids `[source tokens]`, int64 or int32. */
  readonly src: Tensor;
  /** Target ids `[target tokens]`, without the last token of each sequence. */
  readonly tgt: Tensor;
  /** Sequences in `src`. */
  readonly srcSequences: PackedSequences;
  /** Sequences in `tgt`, as many as in `src`. */
  readonly tgtSequences: PackedSequences;
}

/**
 * The encoder-decoder model (paper, section 3). It returns the decoder's vectors;
 * `model.generator` maps them to log-probabilities.
 */
export class Transformer extends Module {
  static override readonly takesPackedRows: boolean = true;

  static override readonly stateNames: Readonly<Record<string, string>> = {
    srcEmbed: 'src_embed',
    tgtEmbed: 'tgt_embed',
  };

  /** N layers over the source, `[B, S, dModel]` to the same shape. */
  encoder: Encoder;
  /** N layers over the target and the encoder's output, `[B, T, dModel]` to the same shape. */
  decoder: Decoder;
  /** Maps ids `[B, S]` to vectors `[B, S, dModel]`. In state dicts `src_embed`. */
  srcEmbed: TensorModule;
  /** Maps ids `[B, T]` to vectors `[B, T, dModel]`. In state dicts `tgt_embed`. */
  tgtEmbed: TensorModule;
  /** Maps the decoder's vectors `[…, dModel]` to log-probabilities `[…, vocabSize]`. */
  generator: Generator;
  /** All settings of a model created by `makeModel`, as stored in checkpoints; otherwise null. */
  config: ModelConfig | null = null;
  /** The modules as `makeModel` created them. @internal */
  blueprint: ModelBlueprint | null = null;

  /**
   * The given modules become submodules of the model; they are not copied. {@link makeModel} creates
   * all of them.
   *
   * @param encoder maps source vectors `[B, S, dModel]` and a mask to the memory `[B, S, dModel]`
   * @param decoder maps target vectors `[B, T, dModel]`, memory and masks to `[B, T, dModel]`
   * @param srcEmbed maps source ids `[B, S]` to `[B, S, dModel]`, including positions
   * @param tgtEmbed maps target ids `[B, T]` to `[B, T, dModel]`, including positions
   * @param generator maps `[…, dModel]` to log-probabilities `[…, vocabSize]`
   */
  constructor(
    encoder: Encoder,
    decoder: Decoder,
    srcEmbed: TensorModule,
    tgtEmbed: TensorModule,
    generator: Generator,
  ) {
    super();
    this.encoder = encoder;
    this.decoder = decoder;
    this.srcEmbed = srcEmbed;
    this.tgtEmbed = tgtEmbed;
    this.generator = generator;
  }

  /**
   * @param src source ids `[B, S]`, int64 or int32
   * @param srcMask the ids that may be attended to, usually `paddingMask(src, pad)` `[B, 1, S]`;
   *   null: all
   * @returns the memory `[B, S, dModel]`
   * @throws RangeError if an id is outside the vocabulary, S is larger than the position table, or
   *   the mask is `[B, S]`, which needs `mask.unsqueeze(1)`
   */
  encode(src: Tensor, srcMask: Tensor | null): Tensor {
    checkIds('Transformer', 'src', src, 2);
    return tidy(() => this.encoder.forward(this.srcEmbed.forward(src), srcMask));
  }

  /**
   * @param memory `[B, S, dModel]`, from {@link Transformer.encode}
   * @param srcMask the mask passed to `encode`
   * @param tgt target ids `[B, T]`, int64 or int32
   * @param tgtMask the ids that each may attend to, usually `targetMask(tgt, pad)` `[B, T, T]`; null:
   *   all
   * @returns `[B, T, dModel]`
   * @throws RangeError as in {@link Transformer.encode}, and if `tgtMask` has two dimensions and B
   *   equals T: pass `mask.unsqueeze(0)` for a mask `[T, T]`
   */
  decode(memory: Tensor, srcMask: Tensor | null, tgt: Tensor, tgtMask: Tensor | null): Tensor {
    checkIds('Transformer', 'tgt', tgt, 2);
    return tidy(() => this.decoder.forward(this.tgtEmbed.forward(tgt), memory, srcMask, tgtMask));
  }

  /**
   * Encodes, then decodes.
   *
   * @param src source ids `[B, S]`
   * @param tgt target ids `[B, T]`, without the last token
   * @param srcMask see {@link Transformer.encode}
   * @param tgtMask see {@link Transformer.decode}
   * @returns `[B, T, dModel]`
   * @throws the errors of both
   */
  override forward(
    src: Tensor,
    tgt: Tensor,
    srcMask: Tensor | null,
    tgtMask: Tensor | null,
  ): Tensor {
    return tidy(() => this.decode(this.encode(src, srcMask), srcMask, tgt, tgtMask));
  }

  /**
   * {@link Transformer.forward} for a batch without padding: computes the same vectors with less
   * work. The sequences determine the attention masks: a source token sees its own source sequence, a
   * target token its source sequence and the target tokens up to its own position.
   *
   * @param batch ids `[source tokens]` and `[target tokens]` with their sequences, as in
   *   `batch.packed`
   * @returns `[target tokens, dModel]`
   * @throws TypeError if the model needs padded batches, see `isPackable`; RangeError if sequences do
   *   not match, ids are outside the vocabulary, or a sequence is longer than the position table
   */
  forwardPacked(batch: PackedInput): Tensor {
    const owner = 'Transformer.forwardPacked';
    checkObject(owner, 'batch', batch, 'batch.packed');
    const { src, tgt, srcSequences, tgtSequences } = batch;
    const hint = 'new PackedSequences(lengths)';
    checkInstance(owner, 'srcSequences', srcSequences, PackedSequences, hint);
    checkInstance(owner, 'tgtSequences', tgtSequences, PackedSequences, hint);
    const obstacle = packingObstacleIn(this);
    if (obstacle !== null) {
      throw new TypeError(
        `${owner}: the model has ${obstacle}, which requires padded batches; use forward`,
      );
    }
    checkIds('Transformer', 'src', src, 1);
    checkIds('Transformer', 'tgt', tgt, 1);
    return tidy(() => this.vectorsOfPacked(batch));
  }

  /**
   * {@link Transformer.forwardPacked} for a checked model and batch, in the caller's scope. @internal
   */
  vectorsOfPacked({ src, tgt, srcSequences, tgtSequences }: PackedInput): Tensor {
    const memory = this.encoder.forward(
      embedPacked(this.srcEmbed as Sequential, 'src', src, srcSequences),
      new PackedMask(srcSequences, srcSequences),
    );
    return this.decoder.forward(
      embedPacked(this.tgtEmbed as Sequential, 'tgt', tgt, tgtSequences),
      memory,
      new PackedMask(tgtSequences, srcSequences),
      new PackedMask(tgtSequences, tgtSequences, true),
    );
  }

  /** @internal */
  override get packingObstacle(): string | null {
    if (!(this.srcEmbed instanceof Sequential && this.tgtEmbed instanceof Sequential)) {
      return 'an embedding that is not a Sequential';
    }
    for (const method of ['encode', 'decode', 'forwardPacked'] as const) {
      if (this[method] !== Transformer.prototype[method]) return `a user-defined ${method} method`;
    }
    return super.packingObstacle;
  }

  /**
   * Extends all position tables that are shorter to `maxLen`, and updates `config`.
   * @throws RangeError, TypeError unless `maxLen` is a positive integer; TypeError if positions are
   *   learned, since new ones would be untrained. Nothing has changed then
   */
  growPositions(maxLen: number): this {
    const tables = this.modules().filter(isPositionTable);
    // If one table cannot grow, the first throws before any has changed: all have the same kind.
    for (const table of tables) table.grow(maxLen);
    if (this.config !== null && this.config.maxLen < maxLen) {
      this.config = { ...this.config, maxLen };
    }
    return this;
  }
}

/**
 * Whether `model.forwardPacked` computes the same as `model.forward` on the padded batch. It does not
 * for models with modules whose class does not declare {@link Module.takesPackedRows}, modules with
 * hooks (which expect `[B, S, …]`), rotary positions or kept attention weights. Inspects every module
 * of the model: call it once, not in every step.
 *
 * @throws TypeError if `model` is not a Transformer
 */
export function isPackable(model: Transformer): boolean {
  checkInstance('isPackable', 'model', model, Transformer, 'makeModel');
  return packingObstacleIn(model) === null;
}

/** A description of what prevents a model from using packed sequences; null: nothing. */
function packingObstacleIn(model: Transformer): string | null {
  for (const { packingObstacle } of model.modules()) {
    if (packingObstacle !== null) return packingObstacle;
  }
  return null;
}
