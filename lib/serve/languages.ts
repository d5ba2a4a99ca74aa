/** Language codes, their English names, and what a text says about its language. */

/** A guess of a text's language. */
export interface DetectedLanguage {
  /** From 0 to 100. */
  readonly confidence: number;
  readonly language: string;
}

const displayNames = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'code' });

/** The English name of a language, such as `'German'`; the code itself if there is none. */
export function languageName(code: string): string {
  try {
    return displayNames.of(code) ?? code;
  } catch {
    // Not a code of a language, such as the name of a column.
    return code;
  }
}

/** Scripts that several languages share, or that consist of several, as Unicode's properties name them. */
const scriptsOf: Readonly<Record<string, readonly string[]>> = {
  Hans: ['Han'],
  Hant: ['Han'],
  Jpan: ['Hiragana', 'Katakana', 'Han'],
  Kore: ['Hangul'],
};

/** The Unicode scripts that a language is written in; null if unknown. */
function languageScripts(code: string): readonly string[] | null {
  try {
    const { script } = new Intl.Locale(code).maximize();
    return script === undefined ? null : (scriptsOf[script] ?? [script]);
  } catch {
    return null;
  }
}

/** The number of letters of any of these scripts. */
function countLetters(text: string, scripts: readonly string[]): number {
  const properties = scripts.map((script) => `\\p{Script=${script}}`).join('');
  try {
    return [...text.matchAll(new RegExp(`[${properties}]`, 'gu'))].length;
  } catch {
    // A script that this version of Unicode does not know.
    return 0;
  }
}

/**
 * Which of some languages a text may be in, by the script of its letters: the most likely first, each
 * with its confidence. Languages of one script cannot be told apart, so they share its confidence.
 */
export function detectLanguages(text: string, candidates: readonly string[]): DetectedLanguage[] {
  const sample = text.slice(0, longestSample);
  const letters = [...sample.matchAll(/\p{L}/gu)].length;
  if (letters === 0 || candidates.length === 0) return [];
  const kana = countLetters(sample, ['Hiragana', 'Katakana']);
  const counts = candidates.map((language) => {
    const scripts = languageScripts(language) ?? [];
    // Japanese has kana; a text of Han alone is Chinese, unless Japanese is the only choice.
    const isHan = scripts.includes('Han');
    const fits = !isHan || scripts.includes('Hiragana') === kana > 0;
    return { language, key: scripts.join(), fits, count: countLetters(sample, scripts) };
  });
  const found = counts.filter(({ count }) => count > 0);
  const fitting = found.filter(({ fits }) => fits);
  const chosen = fitting.length > 0 ? fitting : found;
  return chosen
    .map(({ language, key, count }) => {
      const sharing = chosen.filter((other) => other.key === key).length;
      return { language, confidence: Math.round((100 * count) / letters / sharing) };
    })
    .sort((a, b) => b.confidence - a.confidence);
}

/** Characters of a text that are looked at. */
const longestSample = 2000;

/** The one language that the text can be in; null if there is none, or more than one. */
export function detectOne(text: string, candidates: readonly string[]): DetectedLanguage | null {
  const [only] = candidates;
  if (candidates.length === 1 && only !== undefined) return { confidence: 100, language: only };
  const [first, second] = detectLanguages(text, candidates);
  if (first === undefined || first.confidence === second?.confidence) return null;
  return first;
}
