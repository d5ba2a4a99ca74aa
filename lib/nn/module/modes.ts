/** Training and evaluation mode of a model whose submodules may be in different modes. */
import type { Module } from './module.js';

/** @returns a function that restores the current mode of every module */
export function keepModes(model: Module): () => void {
  const modes = model.modules().map((module) => ({ module, training: module.training }));
  return () => {
    for (const { module, training } of modes) module.training = training;
  };
}

/** Whether the model and all its submodules are in evaluation mode. */
export function isInEvalMode(model: Module): boolean {
  return model.modules().every(({ training }) => !training);
}

/** @throws TypeError if the model or one of its submodules is in training mode */
export function checkEvalMode(owner: string, model: Module): void {
  const training = model.namedModules().find(([, module]) => module.training);
  if (training === undefined) return;
  const [name] = training;
  throw new TypeError(
    `${owner}: ${name === '' ? 'the model' : `${name} of the model`} is in training mode, ` +
      'so dropout would change the result; call model.eval()',
  );
}
