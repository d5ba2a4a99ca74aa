import type { Transformer } from '../model/transformer.js';
import { loraLayers, mergeLora } from './lora.js';

/**
 * A copy of a model with its LoRA layers merged, to translate with and to save, while the model itself
 * is trained on. The caller disposes of it.
 *
 * @returns null for a model without LoRA layers
 */
export function mergedCopy(model: Transformer): Transformer | null {
  if (loraLayers(model).length === 0) return null;
  const copy = model.clone();
  mergeLora(copy);
  return copy;
}
