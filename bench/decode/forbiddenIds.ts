/** Weights with which a model never generates certain ids, whatever decodes with it. */
import { tidy, writeSafetensors, type Transformer } from 'torchformer';

/** Far below any logit, and finite in every precision. */
const never = -1e4;

/** Gives the model's generator a bias that rules out `ids`. */
export function forbidIds(model: Transformer, ids: readonly number[]): void {
  tidy(() => {
    const { bias } = model.generator.proj;
    const values = bias!.detach();
    for (const id of ids) values.select(0, id).fill_(never);
  });
}

/** Writes the model's weights after {@link forbidIds}. */
export async function writeForbidding(
  model: Transformer,
  ids: readonly number[],
  file: string,
): Promise<void> {
  forbidIds(model, ids);
  await writeSafetensors(file, model.stateDict());
}
