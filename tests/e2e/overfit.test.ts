import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { batches, Trainer, Translator } from 'torchformer';
import { fiftyPairs, tinyModel, tinyTask } from '../support/tinyTranslation.js';

test('a model trained on 50 pairs alone gives all 50 exactly, through its folder', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'torchformer-overfit-'));
  try {
    const { tokenizer, specialIds, dataset } = await tinyTask();
    const model = tinyModel(tokenizer.vocabSize);
    const trainer = new Trainer(model, {
      specialIds,
      tokenizer,
      out: join(folder, 'run'),
      learningRate: 3e-3,
      reporter: null,
    });
    const { history } = await trainer.fit(
      (epoch) => batches(dataset, { batchSize: 25, shuffle: true, seed: 1, epoch }),
      { epochs: 60 },
    );
    expect(history.epochs.at(-1)?.trainLoss).toBeLessThan(0.1);
    trainer.dispose();
    model.dispose();

    const translator = await Translator.load(join(folder, 'run'));
    const outputs = await translator.translate(fiftyPairs.map(({ src }) => src));
    expect(outputs).toEqual(fiftyPairs.map(({ tgt }) => tgt));
    translator.dispose();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
