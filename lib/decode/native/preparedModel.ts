/** The weights of a model as native decoding uses them, prepared once for all who decode with it. */
import { call, callAsync } from '../../tensor/dispatch.js';
import type { Tensor } from '../../tensor/tensor.js';
import type { ModelConfig } from '../../nn/model/modelOptions.js';
import type { Transformer } from '../../nn/model/transformer.js';
import { forgetExamined, type DecodableModel } from './decodableModel.js';

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
 * The prepared weights of a model. They are prepared off the event loop at the first call, and again after the weights have changed.
 */
export function preparedModel(
  { model, weights, fingerprint }: DecodableModel,
  precision: DecodingPrecision,
): Promise<PreparedModel> {
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

/** Frees the prepared weights of a model as soon as nobody decodes with them. */
export function forgetPreparedModel(model: Transformer): void {
  const known = preparedModels.get(model);
  preparedModels.delete(model);
  forgetExamined(model);
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
