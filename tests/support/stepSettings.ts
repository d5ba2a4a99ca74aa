import { Adam, isPackable, type SpecialIds, type Transformer } from 'torchformer';

/** What the steps of a training need to know, as a Trainer without options would tell them. */
export function stepSettings(
  model: Transformer,
  { pad }: SpecialIds,
  optimizer = new Adam(model.parameters()),
) {
  return {
    model,
    optimizer,
    parameters: model.parameters(),
    pad,
    packs: () => isPackable(model),
    dtype: 'float32' as const,
    clip: Infinity,
    schedule: null,
    stepsTaken: () => 0,
  };
}
