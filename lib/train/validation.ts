/** What a trainer measures between its steps: loss, scores of translations, samples. */
import type { SpecialIds } from '../data/tokenizers/specialIds.js';
import type { Tokenizer } from '../data/tokenizers/tokenizer.js';
import { Translator } from '../decode/translator.js';
import type { Transformer } from '../nn/model/transformer.js';
import { keepModes } from '../nn/module/modes.js';
import type { BatchSource } from './batchSource.js';
import { longRowsWarning } from './epochWarnings.js';
import { evaluate } from './evaluate.js';
import type { SampleTranslation, ValidationBatchRecord, ValidationRecord } from './run/history.js';
import { translateSamples, type SampleText } from './samples.js';

/** What is measured. */
export interface ValidationSettings {
  readonly specialIds: SpecialIds;
  readonly tokenizer: Tokenizer | undefined;
  /** Texts to translate. */
  readonly samples: readonly SampleText[];
  readonly signal: AbortSignal | undefined;
  readonly say: (message: string) => void;
}

/** A validation without its place in the run. */
export type Measured = Omit<ValidationRecord, 'step' | 'epoch' | 'best'>;

/**
 * Measures the model on `source`, in eval mode; its modes are restored.
 *
 * @returns null if the signal stopped it
 */
export async function validate(
  model: Transformer,
  source: BatchSource,
  epoch: number,
  settings: ValidationSettings,
  onBatch: (
    batch: Omit<ValidationBatchRecord, 'epoch'>,
    soFar: { loss: number; tokens: number; batches: number | null },
  ) => void,
): Promise<Measured | null> {
  const { specialIds, signal, say } = settings;
  const start = performance.now();
  const longRows: number[] = [];
  const evaluation = await evaluate(model, source, {
    pad: specialIds.pad,
    epoch,
    ...(signal === undefined ? {} : { signal }),
    // An error would lose the training so far.
    onLongRows: (rows) => longRows.push(...rows),
    onBatch: ({ index, loss, tokens }, soFar) => {
      const { expectedBatches: batches } = soFar;
      onBatch({ batch: index, loss, tokens }, { loss: soFar.loss, tokens: soFar.tokens, batches });
    },
  });
  const warning = longRowsWarning(longRows);
  if (warning !== null) say(warning);
  if (!evaluation.complete) return null;
  const samples = await showSamples(model, settings);
  if (samples === null) return null;
  const { loss, tokens } = evaluation;
  const seconds = (performance.now() - start) / 1000;
  const perplexity = Math.exp(loss);
  return { loss, perplexity, accuracy: null, tokens, bleu: null, chrf: null, seconds, samples };
}

/**
 * Translates the samples and shows them, in eval mode.
 *
 * @returns null if the signal stopped it
 */
export async function showSamples(
  model: Transformer,
  { specialIds, tokenizer, samples, signal, say }: ValidationSettings,
): Promise<SampleTranslation[] | null> {
  if (samples.length === 0 || tokenizer === undefined) return [];
  const restoreModes = keepModes(model);
  model.eval();
  try {
    const translator = new Translator(model, { tokenizer, specialIds });
    return await translateSamples(translator, samples, signal, say);
  } finally {
    restoreModes();
  }
}
