/** The model for a request's languages. */
import { detectOne, languageName, type DetectedLanguage } from './languages.js';
import type { ListedModel } from './modelList.js';
import { RequestError } from './requestError.js';

/** A model, and what was detected if the source was `auto`. */
export interface ChosenModel {
  readonly model: ListedModel;
  readonly detected: DetectedLanguage | null;
}

/**
 * Finds the model of two languages. Codes are compared without regard to case, `en-US` also
 * finds `en`, and `zh` finds `zh-Hans`. For the source `auto`, the texts are looked at.
 *
 * @throws RequestError 400 if there is none, in the words of LibreTranslate
 */
export function chooseModel(
  models: readonly ListedModel[],
  { source, target, texts }: { source: string; target: string; texts: readonly string[] },
): ChosenModel {
  const to = findCode(
    target,
    models.map((model) => model.target),
  );
  if (to === null) throw notSupported(target);
  if (source === 'auto') {
    const sources = models.filter((model) => model.target === to).map((model) => model.source);
    const detected = detectOne(texts.join('\n'), sources);
    if (detected === null) {
      throw new RequestError(
        400,
        `The source language cannot be detected, name one of ${sources.join(', ')}`,
      );
    }
    return { model: findPair(models, detected.language, to), detected };
  }
  const from = findCode(
    source,
    models.map((model) => model.source),
  );
  if (from === null) throw notSupported(source);
  return { model: findPair(models, from, to), detected: null };
}

function findPair(models: readonly ListedModel[], source: string, target: string): ListedModel {
  const found = models.find((model) => model.source === source && model.target === target);
  if (found !== undefined) return found;
  throw new RequestError(
    400,
    `${languageName(target)} (${target}) is not available as a target language from ` +
      `${languageName(source)} (${source})`,
  );
}

function notSupported(code: string): RequestError {
  return new RequestError(400, `${code.slice(0, 40)} is not supported`);
}

function findCode(code: string, codes: readonly string[]): string | null {
  const wanted = code.replaceAll('_', '-').toLowerCase();
  const [language] = wanted.split('-');
  const lower = codes.map((known) => known.toLowerCase());
  const index = [
    lower.indexOf(wanted),
    lower.indexOf(language as string),
    lower.findIndex((known) => known.startsWith(`${wanted}-`)),
  ].find((found) => found >= 0);
  return index === undefined ? null : (codes[index] as string);
}
