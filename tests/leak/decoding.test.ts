import { describe, expect, it } from 'vitest';
import { memory, Translator } from 'torchformer';
import { fiftyPairs, tinyModel, tinyTask } from '../support/tinyTranslation.js';

const megabyte = 1024 * 1024;
const rounds = 10_000;
/** Garbage that V8 has not collected yet; 10 kB lost in each round after the warm-up would be 80 MB. */
const allowedGrowth = 50 * megabyte;
/** In these the caches of V8, of libtorch and of the allocator grow to their size. */
const warmUp = 2_000;

/** The largest resident sizes while the first rounds run, and while the others do, in bytes. */
async function peaksOf(round: (index: number) => Promise<unknown>): Promise<[number, number]> {
  const peaks: [number, number] = [0, 0];
  for (let index = 0; index < rounds; index++) {
    await round(index);
    const part = index < warmUp ? 0 : 1;
    // Reading it takes as long as a translation.
    if (index % 20 === 0) peaks[part] = Math.max(peaks[part], process.memoryUsage.rss());
  }
  return peaks;
}

describe('10000 short translations', { timeout: 300_000 }, () => {
  it.each([
    ['greedy', {}],
    ['beam search with an abort signal for each', { beam: 3 }],
  ])('leave no tensor behind and keep memory flat: %s', async (_, search) => {
    const { tokenizer, specialIds } = await tinyTask();
    const model = tinyModel(tokenizer.vocabSize).eval();
    const translator = new Translator(model, { tokenizer, specialIds });
    const translate = (index: number) =>
      translator.translate(fiftyPairs[index % fiftyPairs.length]!.src, {
        ...search,
        maxLength: 4,
        signal: new AbortController().signal,
      });
    await translate(0);
    const { tensors, nativeBytes } = memory();
    const [before, after] = await peaksOf(translate);
    expect(memory().tensors).toBe(tensors);
    expect(memory().nativeBytes).toBeLessThanOrEqual(nativeBytes);
    expect(after - before).toBeLessThan(allowedGrowth);
    translator.dispose();
  });

  it('that are aborted while they run leave nothing behind either', async () => {
    const { tokenizer, specialIds } = await tinyTask();
    const model = tinyModel(tokenizer.vocabSize).eval();
    const translator = new Translator(model, { tokenizer, specialIds });
    const texts = fiftyPairs.slice(0, 4).map(({ src }) => src);
    const translate = async () => {
      const controller = new AbortController();
      const running = translator.translate(texts, { maxLength: 30, signal: controller.signal });
      const outcome = running.then(
        () => 'done',
        () => 'aborted',
      );
      await new Promise((resolve) => setImmediate(resolve));
      controller.abort();
      return outcome;
    };
    await translator.translate(texts, { maxLength: 30 });
    const { tensors, nativeBytes } = memory();
    const [before, after] = await peaksOf(translate);
    await translator.close();
    expect(memory().tensors).toBeLessThan(tensors);
    expect(memory().nativeBytes).toBeLessThan(nativeBytes);
    expect(after - before).toBeLessThan(allowedGrowth);
  });
});
