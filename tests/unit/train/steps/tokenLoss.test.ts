import { beforeAll, describe, expect, it } from 'vitest';
import { crossEntropy, tidy, tokenLossSum } from 'torchformer';
import type { Batch, Tensor } from 'torchformer';
import {
  firstBatches,
  largestDifference,
  raggedPairs,
  tinyModel,
  tinyTask,
  type TinyTask,
} from '../../../support/tinyTranslation.js';

let task: TinyTask;
beforeAll(async () => {
  task = await tinyTask(raggedPairs);
});

describe('the smoothed loss of a batch', () => {
  it.each(['crossEntropy', 'klDivergence'] as const)(
    'is the one of all positions with the padding ignored, gradients too: %s',
    (smoothingForm) => {
      const smoothing = { labelSmoothing: 0.1, smoothingForm };
      const model = tinyModel(task.tokenizer.vocabSize);
      const { pad } = task.specialIds;
      const [batch] = firstBatches(task, 8, 8);
      const { src, tgt, tgtY, srcMask, tgtMask, ntokens } = batch as Batch;
      expect(ntokens).toBeLessThan(tgtY.numel);
      const gradientsOf = (loss: Tensor) => {
        model.zeroGrad();
        loss.backward();
        return Object.fromEntries(
          model.namedParameters().map(([name, weight]) => [name, (weight.grad as Tensor).data()]),
        );
      };
      tidy(() => {
        const selected = tokenLossSum(model, batch as Batch, pad, smoothing);
        const everywhere = crossEntropy(
          model.generator.forward(model.forward(src, tgt, srcMask, tgtMask)),
          tgtY,
          { ignoreIndex: pad, reduction: 'sum', ...smoothing },
        );
        expect(selected.item()).toBeCloseTo(everywhere.item(), 3);
        const difference = largestDifference(gradientsOf(selected), gradientsOf(everywhere));
        expect(difference).toBeLessThan(1e-4);
      });
      batch?.dispose();
      model.dispose();
    },
  );

  it('refuses a smoothing that is no probability, and forms it does not know', () => {
    const model = tinyModel(task.tokenizer.vocabSize);
    const [batch] = firstBatches(task, 2, 2);
    const lossWith = (options: object) => () => tokenLossSum(model, batch as Batch, 0, options);
    expect(lossWith({ labelSmoothing: 1.5 })).toThrow(
      /labelSmoothing must be a number from 0 to 1/,
    );
    expect(lossWith({ smoothingForm: 'kl' })).toThrow(/'crossEntropy' or 'klDivergence'/);
    batch?.dispose();
    model.dispose();
  });
});
