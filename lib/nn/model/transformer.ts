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

/** What {@link Transformer.forwardPacked} reads of a batch. */
export interface PackedInput {
  /** Source ids `[source tokens]`, int64 or int32. */
  readonly src: Tensor;
  /** Target ids `[target tokens]`, without the last token of each. */
  readonly tgt: Tensor;
  /** Boundaries in `src`. */
  readonly srcSequences: PackedSequences;
  /** Boundaries in `tgt`, as many. */
  readonly tgtSequences: PackedSequences;
}

/**
 * The encoder-decoder model (paper, section 3). Its result are the decoder's vectors;
 * `model.generator` turns them into log-probabilities.
 */
export class Transformer extends Module {
  static override readonly takesPackedRows: boolean = true;

  static override readonly stateNames: Readonly<Record<string, string>> = {
    srcEmbed: 'src_embed',
    tgtEmbed: 'tgt_embed',
  };

  /** N layers over the source, `[B, S, dModel]` to the same. */
  encoder: Encoder;
  /** N layers over the target and the encoder's result, `[B, T, dModel]` to the same. */
  decoder: Decoder;
  /** From ids `[B, S]` to vectors `[B, S, dModel]`. */
  srcEmbed: TensorModule;
  /** From ids `[B, T]` to vectors `[B, T, dModel]`. In state dicts `tgt_embed`. */
  tgtEmbed: TensorModule;
  /** From the decoder's vectors `[…, dModel]` to log-probabilities `[…, vocabSize]`. */
  generator: Generator;
  /** All settings of a model made by `makeModel`, as checkpoints store them; else null. */
  config: ModelConfig | null = null;
  /** What `makeModel` made. @internal */
  blueprint: ModelBlueprint | null = null;

  /**
   * The modules given become parts of the model; they are not copied. {@link makeModel} makes all
   * of them.
   *
   * @param encoder from source vectors `[B, S, dModel]` and a mask to the memory `[B, S, dModel]`
   * @param decoder from target vectors `[B, T, dModel]`, memory and masks to `[B, T, dModel]`
   * @param srcEmbed from source ids `[B, S]` to `[B, S, dModel]`, positions included
   * @param tgtEmbed from target ids `[B, T]` to `[B, T, dModel]`, positions included
   * @param generator from `[…, dModel]` to log-probabilities `[…, vocabSize]`
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
   * @param srcMask which may be attended, usually `paddingMask(src, pad)` `[B, 1, S]`; null: all
   * @returns the memory `[B, S, dModel]`
   * @throws RangeError for an id outside the vocabulary, S beyond the table of positions, or a
   *   mask `[B, S]`, which needs `mask.unsqueeze(1)`
   */
  encode(src: Tensor, srcMask: Tensor | null): Tensor {
    checkIds('Transformer', 'src', src, 2);
    return tidy(() => this.encoder.forward(this.srcEmbed.forward(src), srcMask));
  }

  /**
   * @param memory `[B, S, dModel]`, from {@link Transformer.encode}
   * @param srcMask the one given to `encode`
   * @param tgt target ids `[B, T]`, int64 or int32
   * @param tgtMask which each may attend, usually `targetMask(tgt, pad)` `[B, T, T]`; null: all
   * @returns `[B, T, dModel]`
   * @throws RangeError as {@link Transformer.encode}, and for a `tgtMask` of two dimensions where B
   *   equals T: `[T, T]` needs `mask.unsqueeze(0)` there
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
   * @throws RangeError, TypeError as the two do
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
   * {@link Transformer.forward} for a batch without padding: the same vectors for the same
   * sentences, for less work. Attention masks follow from the boundaries: a source token sees its
   * own source, a target token its source and what stands before it.
   *
   * @param batch ids `[source tokens]` and `[target tokens]` with their boundaries, as
   *   `batch.packed` has them
   * @returns `[target tokens, dModel]`
   * @throws TypeError for a model that needs padded batches, see `isPackable`; RangeError for
   *   boundaries that do not fit, ids outside the vocabulary, or a sequence beyond the positions
   */
  forwardPacked(batch: PackedInput): Tensor {
    const owner = 'Transformer.forwardPacked';
    checkObject(owner, 'batch', batch, 'what batch.packed holds');
    const { src, tgt, srcSequences, tgtSequences } = batch;
    const wayOut = 'new PackedSequences(lengths)';
    checkInstance(owner, 'srcSequences', srcSequences, PackedSequences, wayOut);
    checkInstance(owner, 'tgtSequences', tgtSequences, PackedSequences, wayOut);
    const obstacle = packingObstacleIn(this);
    if (obstacle !== null) {
      throw new TypeError(
        `${owner}: the model has ${obstacle}, which needs padded batches; use forward`,
      );
    }
    checkIds('Transformer', 'src', src, 1);
    checkIds('Transformer', 'tgt', tgt, 1);
    return tidy(() => this.vectorsOfPacked(batch));
  }

  /**
   * {@link Transformer.forwardPacked} for a model and a batch that were checked, within the caller's
   * scope. @internal
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
      if (this[method] !== Transformer.prototype[method]) return `a method ${method} of its own`;
    }
    return super.packingObstacle;
  }

  /**
   * Makes all tables of positions as long as asked, if they are shorter, and `config` with them.
   * @throws RangeError, TypeError unless `maxLen` is a positive integer; TypeError when positions
   *   are learned: those beyond the table are not known. Nothing has changed then
   */
  growPositions(maxLen: number): this {
    const tables = this.modules().filter(isPositionTable);
    // The first of them refuses before any has grown: a model has tables of one kind.
    for (const table of tables) table.grow(maxLen);
    if (this.config !== null && this.config.maxLen < maxLen) {
      this.config = { ...this.config, maxLen };
    }
    return this;
  }
}

/**
 * Whether `model.forwardPacked` computes what `model.forward` does on the padded batch. Not so for
 * modules whose class does not declare {@link Module.takesPackedRows}, for modules with hooks (which
 * expect `[B, S, …]`), rotary positions, and kept attention weights. Looks at every module of the
 * model: ask once, not in every step.
 *
 * @throws TypeError for what is not a model
 */
export function isPackable(model: Transformer): boolean {
  checkInstance('isPackable', 'model', model, Transformer, 'makeModel');
  return packingObstacleIn(model) === null;
}

/** What keeps a model from running on packed sequences, in words; null: nothing. */
function packingObstacleIn(model: Transformer): string | null {
  for (const { packingObstacle } of model.modules()) {
    if (packingObstacle !== null) return packingObstacle;
  }
  return null;
}
