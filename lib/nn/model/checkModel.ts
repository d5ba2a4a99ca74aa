import { Module } from '../module/module.js';
import type { Transformer } from './transformer.js';
import { describe } from '../../runtime/options.js';

/**
 * Checks a model by its parts, not its class: other models with a Transformer's methods are as
 * good.
 *
 * @throws TypeError naming what is missing
 */
export function checkModel(owner: string, value: unknown): asserts value is Transformer {
  const refuse = (missing: string): never => {
    throw new TypeError(
      `${owner}: model must be a Transformer such as makeModel(…) gives, got ${describe(value)}${missing}`,
    );
  };
  if (!(value instanceof Module)) return refuse('');
  const model = value as Module & Partial<Pick<Transformer, 'encode' | 'decode' | 'generator'>>;
  if (typeof model.encode !== 'function') refuse(' without encode()');
  if (typeof model.decode !== 'function') refuse(' without decode()');
  if (typeof model.generator?.proj?.outFeatures !== 'number') refuse(' without a generator');
}
