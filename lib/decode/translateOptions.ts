/** Checks of the options of translation. */
import {
  checkChoice,
  checkFunction,
  checkInteger,
  checkObject,
  checkOptions,
  checkSignal,
  checkString,
  describe,
  orDefault,
} from '../runtime/arguments.js';
import type { WindowSettings } from './lineTranslation.js';
import type { GenerateOptions } from './sequenceGenerator.js';
import { sentenceSplitter, type SentenceSplitter } from './splitSentences.js';
import type { DetailedOptions, LineOptions, LineReport, SplitOptions } from './translation.js';

/** Checked options for lines. */
export interface LineSettings extends WindowSettings {
  readonly splitter: SentenceSplitter | null;
  readonly search: GenerateOptions;
  readonly onProgress: ((progress: LineReport) => void) | undefined;
}

/** @throws TypeError, RangeError naming the option */
export function checkLineOptions(
  owner: string,
  options: LineOptions & DetailedOptions,
  names: readonly string[],
): LineSettings {
  checkOptions(owner, options, [...names, 'split', 'window', 'onTooLong', 'onProgress']);
  const { split, window, onTooLong, onProgress, ...search } = options;
  if (onProgress !== undefined) checkFunction(owner, 'onProgress', onProgress);
  const size = checkInteger(owner, 'window', orDefault(window, 256), 1);
  return {
    splitter: checkSplit(owner, split),
    window: size,
    firstWindow: checkInteger(owner, 'batchSize', orDefault(search.batchSize, 32), 1),
    onTooLong: checkChoice(owner, 'onTooLong', orDefault(onTooLong, 'error'), tooLongActions),
    onProgress,
    signal: checkSignal(owner, 'signal', search.signal),
    search,
  };
}

const tooLongActions = ['error', 'skip', 'split'] as const;

/** Whether sentences are translated one by one. */
export function isSplitting(split: boolean | SplitOptions | undefined): boolean {
  return split !== undefined && split !== false;
}

/** @throws TypeError, RangeError naming the option; null: texts are not split */
export function checkSplit(
  owner: string,
  split: boolean | SplitOptions | undefined,
): SentenceSplitter | null {
  if (split === undefined || split === false) return null;
  if (split === true) return sentenceSplitter();
  checkObject(owner, 'split', split, 'a boolean or { locale }');
  checkOptions(`${owner} split`, split, ['locale']);
  const { locale } = split;
  if (locale !== undefined) checkString(`${owner} split`, 'locale', locale);
  try {
    return sentenceSplitter(locale);
  } catch (error) {
    throw new RangeError(
      `${owner} split: locale must be a BCP 47 tag such as 'de' or 'zh-Hant', got ${describe(locale)}`,
      { cause: error },
    );
  }
}
