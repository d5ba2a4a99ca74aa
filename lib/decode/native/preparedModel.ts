/** The weights of a model as native decoding uses them, prepared once for all who decode with it. */
import { call, callAsync } from '../../tensor/dispatch.js';
import type { Tensor } from '../../tensor/tensor.js';
import type { MultiHeadedAttention } from '../../nn/attention/multiHeadedAttention.js';
import { LayerNorm } from '../../nn/layers/layerNorm.js';
import type { Linear } from '../../nn/layers/linear.js';
import type { Norm } from '../../nn/layers/norm.js';
import type { PositionwiseFeedForward } from '../../nn/layers/positionwiseFeedForward.js';
import type { ModelConfig } from '../../nn/model/modelOptions.js';
import type { SublayerConnection } from '../../nn/model/sublayerConnection.js';
import type { Transformer } from '../../nn/model/transformer.js';
import type { TransformerEmbedding } from '../../nn/model/transformerEmbedding.js';
import type { Module } from '../../nn/module/module.js';

/**
 * Why a model cannot be decoded natively, such as `'hooks in encoder.layers.0.norm'`; null: it can.
 * Native decoding computes what the modules of `makeModel` do, on the CPU in float32.
 */
export function nativeObstacle(model: Transformer): string | null {
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

/** How native decoding stores the weights of linear layers. */
export type DecodingPrecision = 'float32' | 'bfloat16' | 'int8';

/** @internal */
export const decodingPrecisions: readonly DecodingPrecision[] = ['float32', 'bfloat16', 'int8'];

/** A prepared model; its weights are freed with the last generation that uses them. */
export interface PreparedModel {
  /** The number by which native code knows it. */
  readonly handle: number;
}

interface Prepared {
  readonly fingerprint: number;
  readonly model: Promise<PreparedModel>;
}

const preparedModels = new WeakMap<Transformer, Map<DecodingPrecision, Prepared>>();

const collector = new FinalizationRegistry<number>((handle) => {
  call('torchformer_decode::free_model', handle);
});

/**
 * The prepared weights of a model without a {@link nativeObstacle}. They are prepared off the event
 * loop at the first call, and again after the weights have changed.
 */
export function preparedModel(
  model: Transformer,
  precision: DecodingPrecision,
): Promise<PreparedModel> {
  const weights = weightsOf(model);
  const fingerprint = call('torchformer_decode::fingerprint', weights) as number;
  const byPrecision = preparedModels.get(model) ?? new Map<DecodingPrecision, Prepared>();
  preparedModels.set(model, byPrecision);
  const known = byPrecision.get(precision);
  if (known?.fingerprint === fingerprint) return known.model;
  const prepared = { fingerprint, model: prepare(weights, model.config as ModelConfig, precision) };
  byPrecision.set(precision, prepared);
  prepared.model.catch(() => {
    if (byPrecision.get(precision) === prepared) byPrecision.delete(precision);
  });
  return prepared.model;
}

async function prepare(
  weights: readonly (Tensor | null)[],
  { N, h, norm, order, activation }: ModelConfig,
  precision: DecodingPrecision,
): Promise<PreparedModel> {
  const handle = (await callAsync('torchformer_decode::prepare', weights, N, h, {
    eps: norm.eps,
    sample_std: norm.kind === 'layer' && norm.std === 'sample',
    eps_outside: norm.kind === 'layer' && norm.epsPlace === 'outside',
    centred: norm.kind === 'layer',
    post_norm: order === 'post',
    activation,
    precision,
  })) as number;
  const prepared = { handle };
  collector.register(prepared, handle, prepared);
  return prepared;
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

/** Frees the prepared weights of a model as soon as nobody decodes with them. */
export function forgetPreparedModel(model: Transformer): void {
  const known = preparedModels.get(model);
  preparedModels.delete(model);
  for (const { model: preparing } of known?.values() ?? []) {
    preparing.then(
      (prepared) => {
        collector.unregister(prepared);
        call('torchformer_decode::free_model', prepared.handle);
      },
      () => undefined,
    );
  }
}
