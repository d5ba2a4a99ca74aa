/** A text as lines and parts that a model translates one by one, and what stands between them. */
import { isBlank } from '../data/text.js';
import type { ServedOptions, ServedTranslator } from './servedTranslator.js';

/** A piece of a text: what is translated, or what is kept as it is (line ends, indents). */
export interface LayoutPiece {
  readonly text: string;
  readonly isTranslated: boolean;
}

/** Splits a text at its line ends, and each line into parts that the model accepts. */
export async function layOut(
  text: string,
  translator: ServedTranslator,
  options: ServedOptions,
): Promise<readonly LayoutPiece[]> {
  const pieces: LayoutPiece[] = [];
  const keep = (kept: string) => {
    if (kept !== '') pieces.push({ text: kept, isTranslated: false });
  };
  for (const line of text.split(/(\r\n|[\n\r\u0085\u2028\u2029])/)) {
    if (isBlank(line)) {
      keep(line);
      continue;
    }
    keep(line.slice(0, line.length - line.trimStart().length));
    const parts = await translator.split(line.trim(), options);
    parts.forEach((part, index) => {
      if (index > 0) keep(' ');
      pieces.push({ text: part, isTranslated: true });
    });
    keep(line.slice(line.trimEnd().length));
  }
  return pieces;
}

/** The parts to translate, in order. */
export function partsOf(layout: readonly LayoutPiece[]): string[] {
  return layout.filter(({ isTranslated }) => isTranslated).map(({ text }) => text);
}

/** The text with its parts translated. */
export function joined(layout: readonly LayoutPiece[], translations: readonly string[]): string {
  let next = 0;
  return layout
    .map(({ text, isTranslated }) => (isTranslated ? (translations[next++] as string) : text))
    .join('');
}
