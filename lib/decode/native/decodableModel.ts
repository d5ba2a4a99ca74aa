/** What decoding has to know of a model before each call, found without a walk if nothing changed. */
import { call } from '../../tensor/dispatch.js';
import type { Tensor } from '../../tensor/tensor.js';
import type { MultiHeadedAttention } from '../../nn/attention/multiHeadedAttention.js';
import { LayerNorm } from '../../nn/layers/layerNorm.js';
import type { Linear } from '../../nn/layers/linear.js';
import type { Norm } from '../../nn/layers/norm.js';
import type { PositionwiseFeedForward } from '../../nn/layers/positionwiseFeedForward.js';
import type { SublayerConnection } from '../../nn/model/sublayerConnection.js';
import type { Transformer } from '../../nn/model/transformer.js';
import type { TransformerEmbedding } from '../../nn/model/transformerEmbedding.js';
import type { Module } from '../../nn/module/module.js';
import { snapshotOf, type ModuleSnapshot } from '../../nn/module/moduleSnapshot.js';
import { checkEvalMode } from '../../nn/module/modes.js';

/** A model that native code can decode, as it is now. */
export interface DecodableModel {
  readonly model: Transformer;
  /** In the order of native/core/decode/prepared_model.h. */
  readonly weights: readonly (Tensor | null)[];
  /** A number that changes with the weights. */
  readonly fingerprint: number;
}

interface Examined {
  readonly snapshot: ModuleSnapshot;
  readonly weights: readonly (Tensor | null)[];
  readonly fingerprint: number;
}

/** Models in evaluation mode that native code can decode. */
const examinedModels = new WeakMap<Transformer, Examined>();

/**
 * Examines a model. If its modules, their settings and hooks, and its weights are those of the last call,
 * the result is that of the last call.
 *
 * @returns why native code cannot decode the model, such as `'encoder.layers.0 has hooks …'`, or what it
 *   needs to decode it
 * @throws TypeError if the model or one of its submodules is in training mode
 */
export function examineModel(owner: string, model: Transformer): DecodableModel | string {
  const snapshot = snapshotOf(model);
  const known = examinedModels.get(model);
  // Also if modules are the same, a weight may have another shape, dtype or device.
  if (known?.snapshot === snapshot && fingerprintOf(known.weights) === known.fingerprint) {
    return { model, weights: known.weights, fingerprint: known.fingerprint };
  }
  examinedModels.delete(model);
  checkEvalMode(owner, model);
  const obstacle = obstacleOf(model);
  if (obstacle !== null) return obstacle;
  const weights = weightsOf(model);
  const fingerprint = fingerprintOf(weights);
  examinedModels.set(model, { snapshot, weights, fingerprint });
  return { model, weights, fingerprint };
}

/** The next call of {@link examineModel} for this model examines it anew. */
export function forgetExamined(model: Transformer): void {
  examinedModels.delete(model);
}

/** Native decoding computes what the modules of `makeModel` do, on the CPU in float32. */
function obstacleOf(model: Transformer): string | null {
  const { blueprint, config } = model;
  if (blueprint === null || blueprint === undefined || config === null) {
    return 'it was not created by makeModel';
  }
  const [changed] = blueprint.differences(model);
  if (changed !== undefined) {
    return `${changed === '' ? 'the model' : changed} is not as makeModel created it`;
  }
  for (const [name, module] of model.namedModules()) {
    if (module.forward !== (module.constructor as typeof Module).prototype.forward) {
      return `${name === '' ? 'the model' : name} has hooks or a user-defined forward`;
    }
  }
  const { device, dtype } = model.generator.proj.weight;
  if (device !== 'cpu') return `it is on ${device}`;
  const other = model.parameters().find((parameter) => parameter.dtype !== 'float32');
  return other === undefined && dtype === 'float32'
    ? null
    : `its weights are ${(other ?? model.generator.proj.weight).dtype}, not float32`;
}

function fingerprintOf(weights: readonly (Tensor | null)[]): number {
  return call('torchformer_decode::fingerprint', weights) as number;
}

/** In the order that native code expects, see native/core/decode/prepared_model.h. */
function weightsOf(model: Transformer): (Tensor | null)[] {
  const { encoder, decoder, generator } = model;
  const rotary = (encoder.layers.at(0).selfAttn as MultiHeadedAttention).rotary;
  return [
    ...embeddingOf(model.srcEmbed),
    ...embeddingOf(model.tgtEmbed),
    rotary === null ? null : rotary.table,
    ...linearOf(generator.proj),
    ...normOf(encoder.norm),
    ...normOf(decoder.norm),
    ...[...encoder.layers].flatMap(({ sublayers, selfAttn, feedForward }) => [
      ...normsOf(sublayers),
      ...attentionOf(selfAttn as MultiHeadedAttention),
      ...feedForwardOf(feedForward as PositionwiseFeedForward),
    ]),
    ...[...decoder.layers].flatMap(({ sublayers, selfAttn, srcAttn, feedForward }) => [
      ...normsOf(sublayers),
      ...attentionOf(selfAttn as MultiHeadedAttention),
      ...attentionOf(srcAttn as MultiHeadedAttention),
      ...feedForwardOf(feedForward as PositionwiseFeedForward),
    ]),
  ];
}

/** The table and the positions that are added, if any. */
function embeddingOf(embed: Module): (Tensor | null)[] {
  const [tokens, positions] = embed.children() as unknown as [
    TransformerEmbedding,
    { readonly pe?: Tensor },
  ];
  return [tokens.embedding.weight, positions.pe ?? null];
}

function linearOf(linear: Linear | null): (Tensor | null)[] {
  return linear === null ? [null, null] : [linear.weight, linear.bias];
}

function normOf(norm: Norm | null): (Tensor | null)[] {
  if (norm === null) return [null, null];
  return norm instanceof LayerNorm ? [norm.scale, norm.shift] : [norm.weight, null];
}

function normsOf(sublayers: Iterable<SublayerConnection>): (Tensor | null)[] {
  return [...sublayers].flatMap(({ norm }) => normOf(norm));
}

function attentionOf({ linears }: MultiHeadedAttention): (Tensor | null)[] {
  return [...linears].flatMap(linearOf);
}

function feedForwardOf({ w1, w2, w3 }: PositionwiseFeedForward): (Tensor | null)[] {
  return [w1, w2, w3].flatMap(linearOf);
}
