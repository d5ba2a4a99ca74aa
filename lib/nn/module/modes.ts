/** Training and eval mode of a model whose parts may be in different ones. */
import type { Module } from './module.js';

/** @returns puts every module back into the mode that it is in now */
export function keepModes(model: Module): () => void {
  const modes = model.modules().map((module) => ({ module, training: module.training }));
  return () => {
    for (const { module, training } of modes) module.training = training;
  };
}

/** Whether no part of the model is in training mode. */
export function isInEvalMode(model: Module): boolean {
  return model.modules().every(({ training }) => !training);
}

/** @throws TypeError if the model, or a part of it, is in training mode */
export function checkEvalMode(owner: string, model: Module): void {
  const training = model.namedModules().find(([, module]) => module.training);
  if (training === undefined) return;
  const [name] = training;
  throw new TypeError(
    `${owner}: ${name === '' ? 'the model' : `${name} of the model`} is in training mode, ` +
      'so dropout would change the result; call model.eval()',
  );
}
