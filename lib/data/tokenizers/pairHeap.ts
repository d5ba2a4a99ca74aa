/** A pair of adjacent tokens that could be merged next. */
export interface Candidate {
  left: number;
  right: number;
  /** How often the pair occurred when this entry was made. */
  count: number;
  /** Indices of the words that may contain it, ascending and without duplicates. */
  words: number[];
}

/** Frequent pairs first; ties go to the lower ids, so that the result is deterministic. */
function before(a: Candidate, b: Candidate): boolean {
  if (a.count !== b.count) return a.count > b.count;
  return a.left !== b.left ? a.left < b.left : a.right < b.right;
}

/** A binary heap of candidates: the next merge is always on top. */
export class PairHeap {
  private readonly items: Candidate[] = [];

  push(item: Candidate): void {
    const { items } = this;
    let at = items.length;
    items.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const other = items[parent] as Candidate;
      if (!before(item, other)) break;
      items[at] = other;
      at = parent;
    }
    items[at] = item;
  }

  pop(): Candidate | undefined {
    const { items } = this;
    const top = items[0];
    const last = items.pop();
    if (top === undefined || last === undefined || items.length === 0) return top;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= items.length) break;
      const sibling = items[child + 1];
      if (sibling !== undefined && before(sibling, items[child] as Candidate)) child++;
      const other = items[child] as Candidate;
      if (!before(other, last)) break;
      items[at] = other;
      at = child;
    }
    items[at] = last;
    return top;
  }
}
