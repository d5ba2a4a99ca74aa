/** A text as lines and parts that a model translates one by one, and what stands between them. */
import { isBlank } from '../data/text.js';
import type { ServedOptions, ServedTranslator } from './servedTranslator.js';

/** A piece of a text: what is translated, or what is kept as it is (line ends, indents). */
export interface LayoutPiece {
  readonly text: string;
  readonly isTranslated: boolean;
}

/** The pieces of a text, in order. */
export type Layout = readonly LayoutPiece[];

/** Splits each text at its line ends, and each line into parts that the model accepts. */
export async function layOut(
  texts: readonly string[],
  translator: ServedTranslator,
  options: ServedOptions,
): Promise<readonly Layout[]> {
  // Lines, and between them their ends.
  const rows = texts.map((text) => text.split(/(\r\n|[\n\r\u0085\u2028\u2029])/));
  const lines = rows.flat().filter((line) => !isBlank(line));
  const parts = await translator.split(
    lines.map((line) => line.trim()),
    options,
  );
  let next = 0;
  return rows.map((row) =>
    row.flatMap((line) =>
      isBlank(line) ? kept(line) : laidOut(line, parts[next++] as readonly string[]),
    ),
  );
}

function laidOut(line: string, parts: readonly string[]): LayoutPiece[] {
  return [
    ...kept(line.slice(0, line.length - line.trimStart().length)),
    ...parts.flatMap((text, index) => [
      ...(index > 0 ? kept(' ') : []),
      { text, isTranslated: true },
    ]),
    ...kept(line.slice(line.trimEnd().length)),
  ];
}

function kept(text: string): LayoutPiece[] {
  return text === '' ? [] : [{ text, isTranslated: false }];
}

/** The parts to translate, in order. */
export function partsOf(layout: Layout): string[] {
  return layout.filter(({ isTranslated }) => isTranslated).map(({ text }) => text);
}

/** The text with its parts translated. */
export function joined(layout: Layout, translations: readonly string[]): string {
  let next = 0;
  return layout
    .map(({ text, isTranslated }) => (isTranslated ? (translations[next++] as string) : text))
    .join('');
}
