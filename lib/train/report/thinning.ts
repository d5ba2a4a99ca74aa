/** Keeps long curves and lists small while they grow. */
import type { Curve, Points } from './reportData.js';

/** Neighbouring points of a curve. */
interface Part {
  count: number;
  sumX: number;
  /** Of the finite values. */
  sumY: number;
  finite: number;
  least: Point | null;
  greatest: Point | null;
  /** A value that is not finite, which makes a gap. */
  gap: Point | null;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/**
 * A curve of any length in a fixed memory: it is cut into parts of equally many points, of which the least,
 * the greatest and the mean are kept, so that no peak is lost. When there are too many parts, each two
 * become one.
 */
export class ThinnedCurve {
  readonly #limit: number;
  #parts: Part[] = [];
  /** Points of a part. */
  #width = 1;
  #last: Point | null = null;

  /** @param limit parts; an even number */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Adds a point, whose `x` is greater than all before. */
  add(x: number, y: number): void {
    const point = { x, y };
    this.#last = point;
    const part = this.#parts.at(-1);
    if (part !== undefined && part.count < this.#width) {
      extend(part, point);
      return;
    }
    if (this.#parts.length === this.#limit) this.#halve();
    this.#parts.push(partOf(point));
  }

  /** Whether no point was added. */
  get isEmpty(): boolean {
    return this.#parts.length === 0;
  }

  /** The curve so far. */
  curve(): Curve {
    const points = this.#parts.flatMap(keptPoints);
    const last = this.#last;
    if (last !== null && (points.at(-1)?.x ?? -Infinity) < last.x) points.push(last);
    return {
      points: columns(points),
      means: this.#width === 1 ? null : columns(this.#parts.map(meanOf)),
    };
  }

  #halve(): void {
    const halved: Part[] = [];
    for (let index = 0; index < this.#parts.length; index += 2) {
      const part = this.#parts[index] as Part;
      const next = this.#parts[index + 1];
      if (next !== undefined) join(part, next);
      halved.push(part);
    }
    this.#parts = halved;
    this.#width *= 2;
  }
}

function partOf({ x, y }: Point): Part {
  const isFinite = Number.isFinite(y);
  const point = { x, y };
  return {
    count: 1,
    sumX: x,
    sumY: isFinite ? y : 0,
    finite: isFinite ? 1 : 0,
    least: isFinite ? point : null,
    greatest: isFinite ? point : null,
    gap: isFinite ? null : point,
  };
}

function extend(part: Part, point: Point): void {
  const { x, y } = point;
  part.count++;
  part.sumX += x;
  if (!Number.isFinite(y)) {
    part.gap = point;
    return;
  }
  part.sumY += y;
  part.finite++;
  if (part.least === null || y < part.least.y) part.least = point;
  if (part.greatest === null || y > part.greatest.y) part.greatest = point;
}

function join(part: Part, next: Part): void {
  part.count += next.count;
  part.sumX += next.sumX;
  part.sumY += next.sumY;
  part.finite += next.finite;
  if (next.least !== null && (part.least === null || next.least.y < part.least.y)) {
    part.least = next.least;
  }
  if (next.greatest !== null && (part.greatest === null || next.greatest.y > part.greatest.y)) {
    part.greatest = next.greatest;
  }
  part.gap = next.gap ?? part.gap;
}

function keptPoints({ least, greatest, gap }: Part): Point[] {
  const points = [...new Set([least, greatest, gap])].filter((point) => point !== null);
  return points.sort((a, b) => a.x - b.x);
}

function meanOf({ count, sumX, sumY, finite }: Part): Point {
  return { x: sumX / count, y: finite === 0 ? NaN : sumY / finite };
}

function columns(points: readonly Point[]): Points {
  return { x: points.map(({ x }) => rounded(x)), y: points.map(({ y }) => roundedOrNull(y)) };
}

/** With as many digits as anybody reads, which halves the size of the page. */
function rounded(value: number): number {
  return Number.isInteger(value) ? value : Number(value.toPrecision(7));
}

/** As {@link rounded}; null if the value is missing or not finite. */
export function roundedOrNull(value: number | null | undefined): number | null {
  return value === null || value === undefined || !Number.isFinite(value) ? null : rounded(value);
}

/** A list that keeps every element, then every second, every fourth …, and always the last. */
export class ThinnedList<T> {
  readonly #limit: number;
  #kept: T[] = [];
  #stride = 1;
  #seen = 0;
  #last: T | null = null;

  /** @param limit elements; an even number */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Adds an element. */
  add(element: T): void {
    this.#last = element;
    if (this.#seen++ % this.#stride !== 0) return;
    if (this.#kept.length === this.#limit) {
      this.#kept = this.#kept.filter((_, index) => index % 2 === 0);
      this.#stride *= 2;
      if ((this.#seen - 1) % this.#stride !== 0) return;
    }
    this.#kept.push(element);
  }

  /** Replaces the last element. */
  replaceLast(element: T): void {
    if (this.#kept.at(-1) === this.#last) this.#kept.splice(-1, 1, element);
    this.#last = element;
  }

  /** The last element; null if there is none. */
  get last(): T | null {
    return this.#last;
  }

  /** The elements that are kept. */
  elements(): T[] {
    const last = this.#last;
    return last === null || this.#kept.at(-1) === last ? [...this.#kept] : [...this.#kept, last];
  }
}
