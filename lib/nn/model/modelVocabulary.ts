import { Embedding } from '../layers/embedding.js';
import type { Module } from '../module/module.js';
import type { Transformer } from './transformer.js';

/**
 * How many ids a model's source and target have, by its modules: they count, whatever `config` says
 * of a model whose parts were replaced. A source side without an {@link Embedding} is taken to have
 * the target's.
 */
export function modelVocabulary(model: Transformer): {
  readonly src: number;
  readonly tgt: number;
} {
  const tgt = model.generator.proj.outFeatures;
  // A model of other classes need not have the property.
  const { srcEmbed } = model as { srcEmbed?: Module };
  const table = srcEmbed?.modules().find((module) => module instanceof Embedding);
  return { src: table?.count ?? tgt, tgt };
}

/** The number of ids that source and target both have. */
export function modelVocabSize(model: Transformer): number {
  const { src, tgt } = modelVocabulary(model);
  return Math.min(src, tgt);
}
