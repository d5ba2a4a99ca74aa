/** The lines of the charts, from the curves of the runs. */
import type { Curve, Points, RunReport } from '../reportData.js';
import { score, short } from './format.js';

/** A line of a chart. */
export interface Line {
  /** Index of the run. */
  readonly run: number;
  /** The same for all runs. */
  readonly name: string;
  readonly points: Points;
  /** `faint`: values of single steps behind a smooth line; `dots`: few points, each of them marked. */
  readonly style: 'line' | 'faint' | 'dots';
  /** Index of its color; of several runs each has one. */
  readonly color: number;
  /** A second kind of line in the color of its run. */
  readonly isDashed: boolean;
}

/** What a chart shows. */
export interface ChartContent {
  readonly title: string;
  readonly lines: readonly Line[];
  /** A value as text. */
  readonly format: (value: number | null | undefined) => string;
  /** Whether a logarithmic scale makes sense. */
  readonly mayBeLogarithmic: boolean;
}

/** What the user has chosen. */
export interface Choices {
  readonly axis: 'step' | 'time';
  /** 0: none, to below 1. */
  readonly smoothing: number;
  readonly isLogarithmic: boolean;
  /** Indices of runs that are not shown. */
  readonly hidden: ReadonlySet<number>;
}

/** The charts for which there is data. */
export function chartContents(runs: readonly RunReport[], choices: Choices): ChartContent[] {
  const maker = new LineMaker(runs, choices);
  const contents: ChartContent[] = [
    {
      title: 'Loss',
      lines: [
        ...maker.smoothed('training', ({ loss }) => loss),
        ...maker.dots('validation', 1, ({ validations: { step: x, loss: y } }) => ({ x, y })),
      ],
      format: short,
      mayBeLogarithmic: true,
    },
    {
      title: 'Translation scores',
      lines: [
        ...maker.dots('BLEU', 0, ({ validations: { step: x, bleu: y } }) => ({ x, y })),
        ...maker.dots('chrF', 1, ({ validations: { step: x, chrf: y } }) => ({ x, y })),
      ],
      format: score,
      mayBeLogarithmic: false,
    },
    {
      title: 'Validation accuracy',
      lines: maker.dots('accuracy', 0, ({ validations: { step: x, accuracy: y } }) => ({ x, y })),
      format: short,
      mayBeLogarithmic: false,
    },
    {
      title: 'Learning rate',
      lines: maker.plain('learning rate', ({ learningRate }) => learningRate),
      format: short,
      mayBeLogarithmic: true,
    },
    {
      title: 'Gradient norm',
      lines: maker.smoothed('norm', ({ gradientNorm }) => gradientNorm),
      format: short,
      mayBeLogarithmic: true,
    },
    {
      title: 'Target tokens per second',
      lines: maker.smoothed('tokens/s', ({ speed }) => speed),
      format: short,
      mayBeLogarithmic: false,
    },
  ];
  return contents.filter(({ lines }) => lines.length > 0);
}

class LineMaker {
  readonly #runs: readonly RunReport[];
  readonly #choices: Choices;

  constructor(runs: readonly RunReport[], choices: Choices) {
    this.#runs = runs;
    this.#choices = choices;
  }

  /** The values of single steps, and a smooth line through them. */
  smoothed(name: string, pick: (run: RunReport) => Curve | null): Line[] {
    const { smoothing } = this.#choices;
    return this.#each((run) => {
      const curve = pick(run);
      if (curve === null) return [];
      const smooth = smoothPoints(curve.means ?? curve.points, smoothing);
      return [
        { name, points: curve.points, style: 'faint', second: 0 },
        { name: `${name}, smoothed`, points: smooth, style: 'line', second: 0 },
      ];
    });
  }

  plain(name: string, pick: (run: RunReport) => Curve): Line[] {
    return this.#each((run) => [{ name, points: pick(run).points, style: 'line', second: 0 }]);
  }

  /** @param second 1: in another color, or dashed if each run has its color */
  dots(name: string, second: 0 | 1, pick: (run: RunReport) => Points): Line[] {
    return this.#each((run) => [{ name, points: pick(run), style: 'dots', second }]);
  }

  #each(
    linesOf: (run: RunReport) => (Pick<Line, 'name' | 'points' | 'style'> & { second: 0 | 1 })[],
  ): Line[] {
    const isOne = this.#runs.length === 1;
    return this.#runs.flatMap((run, index) => {
      if (this.#choices.hidden.has(index)) return [];
      return linesOf(run)
        .filter(({ points }) => points.y.some((value) => value !== null))
        .map(({ second, points, ...line }) => ({
          ...line,
          run: index,
          points: this.#choices.axis === 'time' ? overTime(points, run.clock) : points,
          color: isOne ? second : index,
          isDashed: !isOne && second === 1,
        }));
    });
  }
}

/** An exponential moving average without the bias of its beginning. */
function smoothPoints({ x, y }: Points, smoothing: number): Points {
  let mean = 0;
  let weight = 0;
  const smooth = y.map((value) => {
    if (value === null) return null;
    mean = smoothing * mean + (1 - smoothing) * value;
    weight = smoothing * weight + (1 - smoothing);
    return mean / weight;
  });
  return { x, y: smooth };
}

/** With seconds in place of steps. */
function overTime({ x, y }: Points, clock: Points | null): Points {
  if (clock === null) return { x: [], y: [] };
  return { x: x.map((step) => secondsAt(step, clock)), y };
}

/** Between two known times linearly. */
function secondsAt(step: number, { x, y }: Points): number {
  const next = firstNotBelow(x, step);
  const known = (index: number) => y[index] ?? 0;
  if (next === 0) {
    const first = x[0] ?? 1;
    return first === 0 ? known(0) : (known(0) * step) / first;
  }
  if (next >= x.length) return known(x.length - 1);
  const [before, after] = [x[next - 1] ?? 0, x[next] ?? 1];
  const share = (step - before) / (after - before);
  return known(next - 1) + share * (known(next) - known(next - 1));
}

/** Index of the first of ascending numbers that is at least `value`; their count if none is. */
export function firstNotBelow(numbers: readonly number[], value: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((numbers[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
