/** Whole texts, plain or HTML, translated by a model that takes single lines. */
import { parseHtml } from './html.js';
import { joined, layOut, partsOf, type Layout } from './layout.js';
import type {
  DetailedOptions,
  ServedOptions,
  ServedTranslation,
  ServedTranslator,
} from './servedTranslator.js';

/** A text's translation with its parts. */
export interface DetailedText {
  /** The whole translation, then the whole text of each further hypothesis. */
  readonly texts: readonly string[];
  /** What was translated one by one: usually the lines. */
  readonly segments: readonly (ServedTranslation & { readonly source: string })[];
}

/** Translates each text, in order; line ends, indents and blank lines are kept. */
export async function translateTexts(
  texts: readonly string[],
  translator: ServedTranslator,
  options: ServedOptions,
): Promise<string[]> {
  const layouts = await layOut(texts, translator, options);
  const parts = layouts.flatMap(partsOf);
  const outputs = parts.length === 0 ? [] : await translator.translate(parts, options);
  return distribute(layouts, outputs).map(([layout, own]) => joined(layout, own));
}

/** Translates the texts between the tags of each piece of HTML. */
export async function translateHtml(
  pages: readonly string[],
  translator: ServedTranslator,
  options: ServedOptions,
): Promise<string[]> {
  const parsed = pages.map(parseHtml);
  const texts = parsed.flatMap((page) => page.texts);
  const outputs = await translateTexts(texts, translator, options);
  let next = 0;
  return parsed.map((page) => {
    const own = outputs.slice(next, next + page.texts.length);
    next += own.length;
    return page.withTexts(own);
  });
}

/**
 * Translates each text, in order, with hypotheses. The second text of several parts has the second
 * hypothesis of each part, or its last one.
 */
export async function translateDetailed(
  texts: readonly string[],
  translator: ServedTranslator,
  options: DetailedOptions,
): Promise<DetailedText[]> {
  const layouts = await layOut(texts, translator, options);
  const parts = layouts.flatMap(partsOf);
  const outputs = parts.length === 0 ? [] : await translator.detailed(parts, options);
  return distribute(layouts, outputs).map(([layout, own]) => {
    const sources = partsOf(layout);
    const count = Math.max(1, ...own.map(({ hypotheses }) => hypotheses.length));
    const whole = Array.from({ length: count }, (_, rank) =>
      joined(
        layout,
        own.map(({ hypotheses }) => (hypotheses[rank] ?? hypotheses.at(-1))?.text ?? ''),
      ),
    );
    return {
      texts: [...new Set(whole)],
      segments: own.map((segment, index) => ({ source: sources[index] as string, ...segment })),
    };
  });
}

/** Pieces of a text's translation as they are decoded. */
export async function* streamText(
  text: string,
  translator: ServedTranslator,
  options: ServedOptions,
): AsyncGenerator<string> {
  const [layout = []] = await layOut([text], translator, options);
  for (const piece of layout) {
    if (piece.isTranslated) yield* translator.stream(piece.text, options);
    else yield piece.text;
  }
}

/** Each layout with the outputs of its own parts. */
function distribute<T>(
  layouts: readonly Layout[],
  outputs: readonly T[],
): (readonly [Layout, readonly T[]])[] {
  let next = 0;
  return layouts.map((layout) => {
    const own = outputs.slice(next, next + partsOf(layout).length);
    next += own.length;
    return [layout, own] as const;
  });
}
