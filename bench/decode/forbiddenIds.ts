/** Weights with which a model never generates certain ids, whatever decodes with it. */
import { tidy, writeSafetensors, type Transformer } from 'torchformer';

/** Far below any logit, and finite in every precision. */
const never = -1e4;

/** Writes the model's weights with a bias of the generator that rules out `ids`. */
export async function writeForbidding(
  model: Transformer,
  ids: readonly number[],
  file: string,
): Promise<void> {
  tidy(() => {
    const { bias } = model.generator.proj;
    const values = bias!.detach();
    for (const id of ids) values.select(0, id).fill_(never);
  });
  await writeSafetensors(file, model.stateDict());
}
