/** The greedy search of TER for shifts of word sequences, with the limits and ranks of sacrebleu. */
import { deleted, EditDistance, inserted, same } from './editDistance.js';

const longestShift = 10;
const farthestShift = 50;
const mostCandidates = 1000;

/**
 * The edits that make a hypothesis its reference: insertions, deletions, substitutions, and shifts of
 * sequences that the reference has elsewhere, one edit each.
 */
export function editsBetween(hypothesis: readonly string[], reference: readonly string[]): number {
  if (reference.length === 0) return hypothesis.length;
  const numberOf = wordNumbers();
  const wanted = reference.map(numberOf);
  const distance = new EditDistance(wanted, hypothesis.length);
  let words = hypothesis.map(numberOf);
  let shifts = 0;
  let candidates = 0;
  for (;;) {
    const found = bestShift(words, wanted, distance, candidates);
    candidates = found.candidates;
    if (candidates >= mostCandidates || found.gain <= 0) break;
    words = found.words;
    shifts++;
  }
  return shifts + distance.begin(words);
}

function wordNumbers(): (word: string) => number {
  const numbers = new Map<string, number>();
  return (word) => {
    const known = numbers.get(word);
    if (known !== undefined) return known;
    numbers.set(word, numbers.size);
    return numbers.size - 1;
  };
}

interface Shift {
  /** How many edits fewer there are after it. */
  readonly gain: number;
  readonly length: number;
  readonly start: number;
  readonly target: number;
  readonly words: number[];
}

/** The shift that saves most edits. @param tried candidates of earlier searches */
function bestShift(
  words: number[],
  reference: readonly number[],
  distance: EditDistance,
  tried: number,
): { gain: number; words: number[]; candidates: number } {
  const before = distance.begin(words);
  const { positions, isWrong, isMissed } = alignmentOf(distance.trace(), words, reference);
  let best: Shift | null = null;
  let candidates = tried;
  for (const { start, place, length } of commonSequences(words, reference)) {
    // Only what is wrong in the hypothesis may move, to where the reference does not fit yet.
    if (!isWrong.slice(start, start + length).includes(1)) continue;
    if (!isMissed.slice(place, place + length).includes(1)) continue;
    const aligned = positions[place] as number;
    if (start <= aligned && aligned < start + length) continue;
    let previous = -1;
    for (let offset = -1; offset < length; offset++) {
      const position = place + offset;
      if (position >= reference.length) break;
      const target = position < 0 ? 0 : (positions[position] as number) + 1;
      if (target === previous) continue;
      previous = target;
      const shifted = afterShift(words, start, length, target);
      const shift = {
        gain: before - distance.of(shifted),
        length,
        start,
        target,
        words: shifted,
      };
      candidates++;
      if (best === null || isBetter(shift, best)) best = shift;
    }
    if (candidates >= mostCandidates) break;
  }
  return { gain: best?.gain ?? 0, words: best?.words ?? words, candidates };
}

/** By gain, then the longest, then the one that starts first, then the one that goes farthest left. */
function isBetter(a: Shift, b: Shift): boolean {
  const difference =
    a.gain - b.gain || a.length - b.length || b.start - a.start || b.target - a.target;
  return difference > 0;
}

/** Which words belong together, by the edits that make a hypothesis its reference. */
interface Alignment {
  /** For each word of the reference the word of the hypothesis that takes its place, or the one before. */
  readonly positions: Int32Array;
  /** 1 for each word of the hypothesis that is not right. */
  readonly isWrong: Uint8Array;
  /** 1 for each word of the reference that is not met. */
  readonly isMissed: Uint8Array;
}

function alignmentOf(
  trace: readonly number[],
  words: readonly number[],
  reference: readonly number[],
): Alignment {
  const positions = new Int32Array(reference.length);
  const isWrong = new Uint8Array(words.length);
  const isMissed = new Uint8Array(reference.length);
  let word = -1;
  let place = -1;
  for (const edit of trace) {
    const isFault = edit === same ? 0 : 1;
    if (edit !== inserted) isWrong[++word] = isFault;
    if (edit !== deleted) {
      positions[++place] = word;
      isMissed[place] = isFault;
    }
  }
  return { positions, isWrong, isMissed };
}

/** Sequences of the hypothesis that the reference has at `place`, not too long and not too far away. */
function* commonSequences(
  words: readonly number[],
  reference: readonly number[],
): Generator<{ start: number; place: number; length: number }> {
  for (let start = 0; start < words.length; start++) {
    const last = Math.min(reference.length - 1, start + farthestShift);
    for (let place = Math.max(0, start - farthestShift); place <= last; place++) {
      const end = Math.min(longestShift, words.length - start, reference.length - place);
      for (let length = 1; length <= end; length++) {
        if (words[start + length - 1] !== reference[place + length - 1]) break;
        yield { start, place, length };
      }
    }
  }
}

/** The words with those from `start` moved to `target`, a position before the shift. */
function afterShift(words: number[], start: number, length: number, target: number): number[] {
  const moved = words.slice(start, start + length);
  if (target < start) {
    return [
      ...words.slice(0, target),
      ...moved,
      ...words.slice(target, start),
      ...words.slice(start + length),
    ];
  }
  // Within itself, a sequence moves behind as many of the words that follow it.
  const end = target > start + length ? target : length + target;
  return [
    ...words.slice(0, start),
    ...words.slice(start + length, end),
    ...moved,
    ...words.slice(end),
  ];
}
