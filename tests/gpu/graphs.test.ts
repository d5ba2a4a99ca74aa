/** Steps recorded as CUDA graphs are the steps that are not, also in a second training of the process. */
import { describe, expect, it } from 'vitest';
import { manualSeed, Trainer, type TrainerOptions } from 'torchformer';
import { firstBatches, raggedPairs, tinyModel, tinyTask } from '../support/tinyTranslation.js';

async function losses(options: Partial<TrainerOptions>): Promise<number[]> {
  const task = await tinyTask(raggedPairs);
  const model = tinyModel(task.tokenizer.vocabSize, { dropout: 0.1 }).to('cuda');
  const trainer = new Trainer(model, { specialIds: task.specialIds, reporter: null, ...options });
  manualSeed(7);
  // Batches come again: each size is computed once, recorded, and replayed.
  const { history } = await trainer.fit([...firstBatches(task, 24, 4)], { epochs: 4 });
  return history.steps.map(({ loss }) => loss);
}

describe.each(['float32', 'bfloat16'] as const)('graphs in %s', (dtype) => {
  it('have the losses of queued steps, twice', async () => {
    const queued = await losses({ dtype });
    for (let time = 0; time < 2; time++) {
      const recorded = await losses({ dtype, graphs: true });
      expect(recorded).toHaveLength(queued.length);
      recorded.forEach((loss, step) => {
        const tolerance = dtype === 'float32' ? 1e-5 : 1e-3;
        expect(Math.abs(loss / (queued[step] as number) - 1)).toBeLessThan(tolerance);
      });
    }
  });
});
