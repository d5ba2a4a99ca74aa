/** Scores of what a translator makes of given texts. */
import { searchOptionNames } from '../decode/decodingOptions.js';
import type { TooLongAction, TranslateOptions } from '../decode/translation.js';
import { Translator } from '../decode/translator.js';
import { checkReferences, type References } from '../metrics/corpus.js';
import {
  metricOptionNames,
  metricsOf,
  scoreTranslations,
  type CorpusScores,
  type MetricOptions,
} from '../metrics/scoreTranslations.js';
import {
  checkFunction,
  checkInstance,
  checkOptions,
  checkSignal,
  checkStrings,
  orDefault,
} from '../runtime/arguments.js';
import { counted } from '../runtime/counted.js';

/** Options of {@link translationScores}: of the search, by default greedy, and of the metrics. */
export interface TranslationScoreOptions extends MetricOptions, TranslateOptions {
  /**
   * What to do with a source that is too long for the model: `'skip'` (default) counts its translation as
   * empty, `'split'` translates it in parts, `'error'` throws.
   */
  onTooLong?: TooLongAction | undefined;
  /** Called after each group of sources with the number of those done. */
  onProgress?: ((done: number, total: number) => void) | undefined;
}

/** The scores of a translator, with what it wrote. */
export interface TranslationScores extends CorpusScores {
  /** A translation for each source. */
  readonly translations: readonly string[];
  /** The indices of the sources that were too long. */
  readonly tooLong: readonly number[];
  /** Seconds of translating, without the scoring. */
  readonly seconds: number;
}

const optionNames = [
  ...metricOptionNames,
  ...searchOptionNames.filter((name) => !['attention', 'nBest', 'scores'].includes(name)),
  'batchSize',
  'split',
  'onTooLong',
  'onProgress',
];

/**
 * Translates the sources and scores the translations: BLEU, chrF and TER, as {@link scoreTranslations}.
 * Neither holds the event loop. The model must be in eval mode.
 *
 * ```ts
 * const { bleu, translations } = await translationScores(translator, sources, references, { beam: 5 });
 * ```
 *
 * @param sources texts to translate
 * @param references for each source a reference translation, or a list of them
 * @throws TypeError, RangeError if an argument is invalid, there is no source, or the numbers of sources and
 *   references differ; the errors of `Translator.translate`
 * @throws the reason of the signal
 */
export async function translationScores(
  translator: Translator,
  sources: readonly string[],
  references: References,
  options: TranslationScoreOptions = {},
): Promise<TranslationScores> {
  const owner = 'translationScores';
  checkInstance(owner, 'translator', translator, Translator, 'Translator.load');
  checkOptions(owner, options, optionNames);
  checkStrings(owner, 'sources', sources);
  const { lists } = checkReferences(owner, references);
  if (lists.length !== sources.length) {
    throw new RangeError(
      `${owner}: there must be a reference for each source, got ` +
        `${counted(sources.length, 'source')} and ${counted(lists.length, 'reference')}`,
    );
  }
  // Before work of minutes is done.
  metricsOf(owner, options, lists);
  const { bleu, chrf, ter, onProgress, onTooLong, ...search } = options;
  const signal = checkSignal(owner, 'signal', search.signal);
  if (onProgress !== undefined) checkFunction(owner, 'onProgress', onProgress);
  const texts = sources.map((text, index) => ({ number: index + 1, text }));
  const lines = translator.translateTextLines(
    // eslint-disable-next-line @typescript-eslint/require-await -- the same type as the lines of a file
    async function* () {
      yield texts;
    },
    { ...search, onTooLong: orDefault(onTooLong, 'skip') },
    (number) => `${owner}: sources[${number - 1}]`,
  );
  const start = performance.now();
  const translations: string[] = [];
  const tooLong: number[] = [];
  for await (const group of lines) {
    for (const { output, action } of group) {
      if (action === 'skip') tooLong.push(translations.length);
      translations.push(output);
    }
    onProgress?.(translations.length, sources.length);
  }
  const seconds = (performance.now() - start) / 1000;
  const scores = await scoreTranslations(translations, lists, { bleu, chrf, ter, signal });
  return { ...scores, translations, tooLong, seconds };
}
