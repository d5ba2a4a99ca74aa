/** The edit distance to a reference, near the diagonal, as sacrebleu computes it for TER. */

/** No way leads to the cell. */
const unknown = 0;
/** Edits of a trace: what is done to a hypothesis to make it the reference. */
export const same = 1;
export const substituted = 2;
export const deleted = 3;
export const inserted = 4;

const beamWidth = 25;
const infinite = 2 ** 30;

/**
 * Edit distances of arrangements of the same words to one reference. Only cells near the (sloped) diagonal
 * are looked at, so that the distance is an upper bound for texts that differ a lot. Of equal edits the
 * first of substitution, deletion and insertion is taken; others would lead to other shifts.
 *
 * The matrix has a row more than the hypothesis has words, and a column more than the reference.
 */
export class EditDistance {
  readonly #reference: readonly number[];
  readonly #length: number;
  readonly #columns: number;
  /** Costs and last edits on the way to each cell for the words of {@link EditDistance.begin}. */
  readonly #costs: Int32Array;
  readonly #edits: Uint8Array;
  /** Costs for another arrangement. */
  readonly #trial: Int32Array;
  #words: readonly number[] = [];

  /**
   * @param reference numbers of words
   * @param length words of each hypothesis
   */
  constructor(reference: readonly number[], length: number) {
    this.#reference = reference;
    this.#length = length;
    this.#columns = reference.length + 1;
    this.#costs = new Int32Array((length + 1) * this.#columns);
    this.#edits = new Uint8Array((length + 1) * this.#columns);
    this.#trial = new Int32Array((length + 1) * this.#columns);
    for (let j = 0; j < this.#columns; j++) this.#costs[j] = j;
    this.#edits.fill(inserted, 0, this.#columns);
  }

  /** The number of edits from a hypothesis to the reference, as a start for arrangements of its words. */
  begin(hypothesis: readonly number[]): number {
    this.#words = hypothesis;
    this.#fill(this.#costs, this.#edits, hypothesis, 0);
    return this.#costs.at(-1) as number;
  }

  /** The edits of the hypothesis at the start, in the order of its words. */
  trace(): number[] {
    const trace: number[] = [];
    let i = this.#length;
    let j = this.#reference.length;
    while (i > 0 || j > 0) {
      const edit = this.#edits[i * this.#columns + j] ?? unknown;
      if (edit === unknown) throw new Error('TER: the beam has no way from one text to the other');
      trace.push(edit);
      if (edit !== inserted) i--;
      if (edit !== deleted) j--;
    }
    return trace.reverse();
  }

  /** The number of edits for another arrangement of the words, which may begin like the one at the start. */
  of(hypothesis: readonly number[]): number {
    let known = 0;
    while (known < this.#length && hypothesis[known] === this.#words[known]) known++;
    const start = known * this.#columns;
    this.#trial.set(this.#costs.subarray(start, start + this.#columns), start);
    this.#fill(this.#trial, null, hypothesis, known);
    return this.#trial.at(-1) as number;
  }

  /** Fills the rows after `known`. */
  #fill(
    costs: Int32Array,
    edits: Uint8Array | null,
    hypothesis: readonly number[],
    known: number,
  ): void {
    const columns = this.#columns;
    const slope = this.#length > 0 ? this.#reference.length / this.#length : 1;
    // Otherwise there could be no cell in common with the row before.
    const width = slope / 2 > beamWidth ? Math.ceil(slope / 2 + beamWidth) : beamWidth;
    costs.fill(infinite, (known + 1) * columns);
    edits?.fill(unknown, (known + 1) * columns);
    for (let i = known + 1; i <= this.#length; i++) {
      const center = Math.floor(i * slope);
      const row = i * columns;
      const end = i === this.#length ? columns : Math.min(columns, center + width);
      for (let j = Math.max(0, center - width); j < end; j++) {
        const cell = row + j;
        const deletion = (costs[cell - columns] as number) + 1;
        if (j === 0) {
          costs[cell] = deletion;
          if (edits !== null) edits[cell] = deleted;
          continue;
        }
        const isSame = hypothesis[i - 1] === this.#reference[j - 1];
        const onDiagonal = (costs[cell - columns - 1] as number) + (isSame ? 0 : 1);
        const insertion = (costs[cell - 1] as number) + 1;
        let best = infinite;
        let edit = unknown;
        if (onDiagonal < best) {
          best = onDiagonal;
          edit = isSame ? same : substituted;
        }
        if (deletion < best) {
          best = deletion;
          edit = deleted;
        }
        if (insertion < best) {
          best = insertion;
          edit = inserted;
        }
        costs[cell] = best;
        if (edits !== null) edits[cell] = edit;
      }
    }
  }
}
