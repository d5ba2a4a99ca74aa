/** A text as sentences and the white space around them. */
import { isBlank } from '../data/text.js';

/** Pieces of a text to translate, and everything else of it. */
export interface TextLayout {
  /** Each without white space around it. */
  readonly pieces: readonly string[];
  /** What is before, between and behind the pieces: one more than there are pieces. */
  readonly separators: readonly string[];
}

/** Finds the sentences of a text, in the order of the text. */
export type SentenceSplitter = (text: string) => TextLayout;

const lineEnds = /(\r\n|[\n\r\v\f\u0085\u2028\u2029])/;

/**
 * The time of a segmenter grows with the square of a text's length; so it sees this many characters at
 * a time, or more if a sentence is longer.
 */
const charactersAtATime = 1000;

/** `Intl.Segmenter` takes these for the end of a sentence: initials, titles and the like. */
const abbreviation =
  /(?:^|[\s([{"'“„«‘])(?:\p{Lu}|Dr|Mr|Mrs|Ms|Prof|St|Sr|Jr|No|Nos|Nr|Mme|Mlle|Hr|Fr|vs|cf|e\.g|i\.e|z\.B|d\.h|bzw|ca|vgl)\.\s*$/u;

/**
 * Splits texts at line ends, and lines into sentences by the Unicode rules of a locale. Separators and
 * pieces, one after the other, are the text again.
 *
 * @param locale a BCP 47 tag; default: that of the process
 * @throws RangeError if the tag is not valid
 */
export function sentenceSplitter(locale?: string): SentenceSplitter {
  const segmenter = new Intl.Segmenter(locale, { granularity: 'sentence' });
  return (text) => {
    const pieces: string[] = [];
    const separators = [''];
    const separate = (characters: string) => {
      separators.push((separators.pop() as string) + characters);
    };
    for (const part of text.split(lineEnds)) {
      for (const sentence of isBlank(part) ? [part] : sentencesOf(part, segmenter)) {
        const piece = sentence.trim();
        if (isBlank(piece)) {
          separate(sentence);
          continue;
        }
        separate(sentence.slice(0, sentence.length - sentence.trimStart().length));
        pieces.push(piece);
        separators.push(sentence.slice(sentence.trimEnd().length));
      }
    }
    return { pieces, separators };
  };
}

/** The sentences of a line; together they are the line. */
function* sentencesOf(line: string, segmenter: Intl.Segmenter): Generator<string> {
  let open = '';
  for (const segment of segmentsOf(line, segmenter)) {
    open += segment;
    if (abbreviation.test(open)) continue;
    yield open;
    open = '';
  }
  if (open !== '') yield open;
}

function* segmentsOf(line: string, segmenter: Intl.Segmenter): Generator<string> {
  let start = 0;
  let length = charactersAtATime;
  while (start < line.length) {
    const seen = line.slice(start, start + length);
    const isEnd = start + length >= line.length;
    const segments = Array.from(segmenter.segment(seen), ({ segment }) => segment);
    // Whether a sentence ends depends on the letters after it.
    let unsure = '';
    while (!isEnd && segments.length > 0 && !/\p{L}/u.test(unsure)) {
      unsure = (segments.pop() as string) + unsure;
    }
    yield* segments;
    start += seen.length - unsure.length;
    length = segments.length === 0 ? 2 * length : charactersAtATime;
  }
}

/** Scripts whose sentences follow each other without a space. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303f\uff00-\uffef]["'”’]*$/u;

/**
 * A text with the outputs for its pieces in their place. Where sentences of the text follow each other
 * without a space (as in Chinese), one is inserted if the output's script needs it.
 */
export function joinPieces(separators: readonly string[], outputs: readonly string[]): string {
  let text = separators[0] ?? '';
  outputs.forEach((output, index) => {
    text += output;
    const separator = separators[index + 1] as string;
    const isLast = index === outputs.length - 1;
    const needsSpace = !isLast && separator === '' && output !== '' && !unspaced.test(output);
    text += needsSpace ? ' ' : separator;
  });
  return text;
}

/** The layout of a text of which parts have been taken in order, with only white space between them. */
export function layoutOfParts(text: string, parts: readonly string[]): TextLayout {
  const separators: string[] = [];
  let end = 0;
  for (const part of parts) {
    const start = text.indexOf(part, end);
    separators.push(text.slice(end, start));
    end = start + part.length;
  }
  return { pieces: parts, separators: [...separators, text.slice(end)] };
}
