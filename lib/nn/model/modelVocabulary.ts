import { Embedding } from '../layers/embedding.js';
import type { Module } from '../module/module.js';
import type { Transformer } from './transformer.js';

/**
 * The number of source and target ids of a model. It is taken from the modules, since `config` may
 * be wrong if modules were replaced. A source without an {@link Embedding} is assumed to have as many
 * ids as the target.
 */
export function modelVocabulary(model: Transformer): {
  readonly src: number;
  readonly tgt: number;
} {
  const tgt = model.generator.proj.outFeatures;
  // A model of another class may not have the property.
  const { srcEmbed } = model as { srcEmbed?: Module };
  const table = srcEmbed?.modules().find((module) => module instanceof Embedding);
  return { src: table?.count ?? tgt, tgt };
}

/** The number of ids that source and target both have. */
export function modelVocabSize(model: Transformer): number {
  const { src, tgt } = modelVocabulary(model);
  return Math.min(src, tgt);
}
