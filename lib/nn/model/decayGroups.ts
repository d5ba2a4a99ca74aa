import {
  checkBoolean,
  checkInstance,
  checkNonNegative,
  checkRequiredOptions,
  orDefault,
} from '../../runtime/arguments.js';
import { Embedding } from '../layers/embedding.js';
import { isPositionTable } from '../layers/positionTable.js';
import { Module } from '../module/module.js';
import type { Parameter } from '../module/parameter.js';

/** Options of {@link decayGroups}. */
export interface DecayGroupsOptions {
  /** the decay of the weights, as an optimizer takes it */
  weightDecay: number;
  /**
   * whether token embeddings and learned positions decay too; default true. A table that is also the
   * generator's weight counts as an embedding.
   */
  embeddings?: boolean;
}

/** Parameters with their weight decay, for the constructor of an optimizer. */
export interface DecayGroup {
  /** the parameters of the group, which may be none */
  params: Parameter[];
  /** the decay of all of them */
  weightDecay: number;
}

/**
 * Divides the parameters of a model into those that weight decay should shrink and those that it
 * should not: biases and the gains of norms, which have fewer than two dimensions, and, if
 * `embeddings` is false, the tables of tokens and positions.
 *
 * @returns two groups, first the one with `weightDecay`, then the one without; each parameter is in one
 * @throws TypeError, RangeError for arguments out of range
 */
export function decayGroups(
  model: Module,
  options: DecayGroupsOptions,
): [decayed: DecayGroup, others: DecayGroup] {
  const owner = 'decayGroups';
  checkInstance(owner, 'model', model, Module, 'makeModel(…)');
  checkRequiredOptions(owner, options, ['weightDecay', 'embeddings'], 'weightDecay');
  const weightDecay = checkNonNegative(owner, 'weightDecay', options.weightDecay);
  const decaysTables = checkBoolean(owner, 'embeddings', orDefault(options.embeddings, true));
  const tables = model
    .modules()
    .filter((module) => module instanceof Embedding || isPositionTable(module))
    .flatMap((module) => module.parameters({ recurse: false }));
  const excluded = new Set(decaysTables ? [] : tables);
  const decays = (parameter: Parameter) => parameter.ndim > 1 && !excluded.has(parameter);
  const parameters = model.parameters();
  return [
    { params: parameters.filter(decays), weightDecay },
    { params: parameters.filter((parameter) => !decays(parameter)), weightDecay: 0 },
  ];
}
