/** What the builders of this folder have in common. */
import type { Module, Tensor, Transformer } from 'torchformer';
import type { Given } from './fixtures.js';

/** With the dropout of the post but switched off, or in training with every dropout 0. */
export type Mode = 'evaluation' | 'training with p = 0';

export type Outputs = Record<string, Tensor>;

export interface Subject {
  /** Null for a function. */
  module: Module | null;
  /** Runs it on the fixture's arguments, null for one left out; outputs under the fixture's names. */
  run: (...given: (Tensor | null)[]) => Outputs;
}

/** Reads constructor arguments, and fails on a fixture that lacks them. */
export interface Arguments {
  number: (name: string) => number;
  text: (name: string) => string;
  has: (name: string) => boolean;
  /** The numbers among these that the fixture has, under torchformer's names. */
  renamed: <Name extends string>(
    names: Readonly<Record<string, Name>>,
  ) => { [name in Name]?: number };
}

export function argumentsOf(module: string, options: Given): Arguments {
  function read<Type extends 'number' | 'string'>(name: string, type: Type) {
    const value = options[name];
    if (typeof value !== type) throw new Error(`the fixture of ${module} has no ${type} ${name}`);
    return value;
  }
  const has = (name: string): boolean => options[name] !== undefined;
  const number = (name: string): number => read(name, 'number') as number;
  return {
    has,
    number,
    text: (name) => read(name, 'string') as string,
    renamed<Name extends string>(names: Readonly<Record<string, Name>>) {
      const given = Object.entries(names).filter(([name]) => has(name));
      const renamed = given.map(([name, own]) => [own, number(name)] as const);
      return Object.fromEntries(renamed) as { [name in Name]?: number };
    },
  };
}

/** Puts the subject's module into the mode that it was built for. */
export function inMode(subject: Subject, mode: Mode): Subject {
  subject.module?.train(mode !== 'evaluation');
  return subject;
}

export function unary(module: Module & { forward(x: Tensor): Tensor }): Subject {
  return { module, run: (x) => ({ output: module.forward(here(x)) }) };
}

export function here(tensor: Tensor | null | undefined): Tensor {
  if (tensor === null || tensor === undefined)
    throw new Error('the fixture leaves out a required argument');
  return tensor;
}

/** A whole model with its loss. */
export function transformer(module: Transformer): Subject {
  return {
    module,
    run(src, tgt, srcMask, tgtMask, tgtY) {
      const output = module.forward(here(src), here(tgt), srcMask, tgtMask);
      const logProbabilities = module.generator.forward(output);
      return {
        output,
        log_probabilities: logProbabilities,
        loss: meanLoss(logProbabilities, here(tgtY)),
      };
    },
  };
}

/** Mean over the tokens that are not padding (id 0), composed of plain operations, at least float32. */
function meanLoss(logProbabilities: Tensor, tgtY: Tensor): Tensor {
  const exact = logProbabilities.dtype === 'float64' ? logProbabilities : logProbabilities.float();
  const chosen = exact.gather(-1, tgtY.unsqueeze(-1)).squeeze(-1);
  const isToken = tgtY.ne(0);
  return chosen
    .mul(isToken.to({ dtype: chosen.dtype }))
    .sum()
    .neg()
    .div(isToken.sum());
}
