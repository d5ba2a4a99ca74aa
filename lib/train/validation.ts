/** What a trainer measures between its steps: loss, scores of translations, samples. */
import type { SpecialIds } from '../data/tokenizers/specialIds.js';
import type { Tokenizer } from '../data/tokenizers/tokenizer.js';
import type { TranslateOptions } from '../decode/translation.js';
import { Translator } from '../decode/translator.js';
import type { BleuOptions } from '../metrics/bleu.js';
import type { ChrfOptions } from '../metrics/chrf.js';
import { mergedCopy } from '../nn/finetuning/mergedCopy.js';
import type { Transformer } from '../nn/model/transformer.js';
import { keepModes } from '../nn/module/modes.js';
import type { BatchSource } from './batchSource.js';
import { longRowsWarning } from './epochWarnings.js';
import { evaluate } from './evaluate.js';
import type { SampleTranslation, ValidationBatchRecord, ValidationRecord } from './run/history.js';
import { maxLength, translateSamples, type SampleText } from './samples.js';
import { translationScores } from './translationScores.js';

/** Sentences that are translated at a validation, and how. */
export interface ScoreSettings {
  /** Texts with their expected translations. */
  readonly pairs: readonly { readonly source: string; readonly reference: string }[];
  /**
   * Options of the search, such as `{ beam: 5, lengthPenalty: 1 }`. Default: greedy, at most twice the
   * tokens of the text plus ten, since a young model repeats itself.
   */
  readonly search?: Omit<TranslateOptions, 'signal'>;
  /** Options of BLEU. The default of `tokenize` depends on the references, see `tokenizerFor`. */
  readonly bleu?: BleuOptions;
  /** Options of chrF. */
  readonly chrf?: ChrfOptions;
}

/** What is measured. */
export interface ValidationSettings {
  readonly specialIds: SpecialIds;
  readonly tokenizer: Tokenizer | undefined;
  /** Null scores without. */
  readonly scores: ScoreSettings | undefined;
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
    accuracy: true,
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
  const translated = await withMergedCopy(model, async (merged) => {
    const scores = await scoresOf(merged, settings);
    return scores === null ? null : { scores, samples: await translationsOf(merged, settings) };
  });
  if (translated === null || translated.samples === null) return null;
  const { scores, samples } = translated;
  const { loss, perplexity, accuracy, tokens } = evaluation;
  const seconds = (performance.now() - start) / 1000;
  return { loss, perplexity, accuracy, tokens, ...scores, seconds, samples };
}

/** @returns null if the signal stopped it */
async function scoresOf(
  model: Transformer,
  { specialIds, tokenizer, scores, signal }: ValidationSettings,
): Promise<{ bleu: number | null; chrf: number | null } | null> {
  if (scores === undefined || tokenizer === undefined) return { bleu: null, chrf: null };
  const { pairs, search, bleu, chrf } = scores;
  const restoreModes = keepModes(model);
  model.eval();
  try {
    const found = await translationScores(
      new Translator(model, { tokenizer, specialIds }),
      pairs.map(({ source }) => source),
      pairs.map(({ reference }) => reference),
      { maxLength, ...search, bleu, chrf, signal },
    );
    return { bleu: found.bleu.score, chrf: found.chrf.score };
  } catch (error) {
    if (signal?.aborted === true) return null;
    throw error;
  } finally {
    restoreModes();
  }
}

/**
 * Translates the samples and shows them, in eval mode.
 *
 * @returns null if the signal stopped it
 */
export async function showSamples(
  model: Transformer,
  settings: ValidationSettings,
): Promise<SampleTranslation[] | null> {
  return withMergedCopy(model, (merged) => translationsOf(merged, settings));
}

/** Native code decodes a model with LoRA layers only once they are merged. */
async function withMergedCopy<T>(
  model: Transformer,
  translate: (merged: Transformer) => Promise<T>,
): Promise<T> {
  const copy = mergedCopy(model);
  try {
    return await translate(copy ?? model);
  } finally {
    copy?.dispose();
  }
}

async function translationsOf(
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
