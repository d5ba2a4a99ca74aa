/** One chart with the values at its cursor. */
import uPlot from 'uplot';
import { byId, make, tableRow, visible } from './dom.js';
import { axisMarks, duration, whole } from './format.js';
import { firstNotBelow, type ChartContent, type Line } from './lines.js';

/** A part of the horizontal axis. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/** Settings of a {@link Chart} that all charts share. */
export interface ChartSettings {
  readonly runNames: readonly string[];
  readonly axis: 'step' | 'time';
  readonly isLogarithmic: boolean;
  /** Everything. */
  readonly full: Range;
  /** What is shown first. */
  readonly zoom: Range;
  /** Called when the user zooms; null: shows everything. */
  readonly onZoom: (range: Range | null) => void;
}

const height = 260;
/** Seconds between the marks of an axis of time. */
const timeSteps = [
  1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 14_400, 43_200, 86_400, 172_800, 604_800,
];

/** The color with this index, in the current color scheme. */
export function lineColor(index: number): string {
  return `var(--line-${index % 8})`;
}

function cssValue(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** A chart of some lines. */
export class Chart {
  readonly element: HTMLElement;
  readonly #plot: uPlot;
  readonly #content: ChartContent;
  readonly #settings: ChartSettings;
  readonly #cells = new Map<Line, HTMLElement>();
  readonly #place: HTMLElement;
  /** What is shown. */
  #zoom: Range;

  constructor(content: ChartContent, settings: ChartSettings) {
    // What is behind comes first.
    const lines = [...content.lines].sort((a, b) => depth(a) - depth(b));
    this.#content = { ...content, lines };
    this.#settings = settings;
    this.#zoom = settings.zoom;
    this.#place = make('span', { className: 'note' });
    const frame = make('div', {
      className: 'plot',
      tabIndex: 0,
      role: 'group',
      'aria-label': `${content.title}: the arrow keys move the cursor, + and - zoom, 0 shows everything`,
    });
    this.element = make(
      'figure',
      { className: 'chart' },
      make('figcaption', {}, make('h3', {}, content.title), this.#place),
      frame,
      make('div', { className: 'scroller' }, this.#valueTable()),
    );
    byId('charts').append(this.element);
    const tables = lines.map(({ points }) => [points.x, this.#drawable(points.y)]);
    const data = uPlot.join(tables as uPlot.AlignedData[]);
    this.#plot = new uPlot(this.#options(frame.clientWidth), data, frame);
    frame.addEventListener('keydown', (event) => this.#onKey(event));
    new ResizeObserver(() => {
      if (frame.clientWidth > 0) this.#plot.setSize({ width: frame.clientWidth, height });
    }).observe(frame);
    this.#showValues(null);
  }

  /** Shows a part of the horizontal axis. */
  setZoom(range: Range): void {
    this.#zoom = range;
    this.#plot.setScale('x', range);
  }

  destroy(): void {
    this.#plot.destroy();
    this.element.remove();
  }

  #options(width: number): uPlot.Options {
    const { axis, isLogarithmic, zoom, onZoom } = this.#settings;
    const isTime = axis === 'time';
    const ink = cssValue('--quiet');
    const grid = { stroke: cssValue('--grid'), width: 1 };
    const common = { stroke: ink, grid, ticks: grid, font: '12px system-ui, sans-serif' };
    const logarithmic = isLogarithmic && this.#content.mayBeLogarithmic;
    return {
      width,
      height,
      legend: { show: false },
      cursor: {
        y: false,
        sync: { key: 'report', scales: ['x', null] },
        drag: { x: true, y: false, dist: 5 },
        bind: {
          dblclick: () => () => {
            onZoom(null);
            return null;
          },
        },
        dataIdx: (plot, series, index) => nearestDrawn(plot, series, index),
        points: { size: 7 },
      },
      scales: {
        x: { time: false, auto: false, ...zoom },
        y: logarithmic ? { distr: 3, log: 10 } : {},
      },
      axes: [
        {
          ...common,
          ...(isTime ? { incrs: timeSteps } : {}),
          size: 34,
          values: (_plot, splits) =>
            isTime
              ? splits.map(duration)
              : axisMarks(splits.map((value) => (Number.isInteger(value) ? value : null))),
        },
        { ...common, size: 64, values: (_plot, splits) => axisMarks(splits) },
      ],
      series: [{}, ...this.#content.lines.map(seriesOf)],
      hooks: {
        setCursor: [(plot) => this.#onCursor(plot)],
        setScale: [
          (plot, key) => {
            const { min, max } = plot.scales['x'] ?? {};
            if (key !== 'x' || typeof min !== 'number' || typeof max !== 'number') return;
            // It is also called after setZoom, later.
            if (min !== this.#zoom.min || max !== this.#zoom.max) onZoom({ min, max });
          },
        ],
      },
    };
  }

  /** A logarithmic scale has no place for the others. */
  #drawable(values: readonly (number | null)[]): readonly (number | null)[] {
    if (!this.#settings.isLogarithmic || !this.#content.mayBeLogarithmic) return values;
    return values.map((value) => (value !== null && value > 0 ? value : null));
  }

  /** Rows for runs, columns for their lines. */
  #valueTable(): HTMLElement {
    const { lines } = this.#content;
    const { runNames } = this.#settings;
    const columns = [...new Set(lines.map(({ name }) => name))];
    const runs = [...new Set(lines.map(({ run }) => run))];
    const isNamed = runNames.length > 1;
    const rows = runs.map((run) => {
      const cells = columns.map((name) => {
        const line = lines.find((one) => one.run === run && one.name === name);
        const cell = make('span', { className: 'value' });
        if (line !== undefined) this.#cells.set(line, cell);
        return cell;
      });
      if (!isNamed) return make('tr', {}, ...cells.map((cell) => make('td', {}, cell)));
      const name = make('span', { dir: 'auto' }, swatch(run), visible(runNames[run] ?? ''));
      return tableRow('td', [name, ...cells]);
    });
    const heads = columns.map((name) => {
      const line = lines.find((one) => one.name === name) as Line;
      return make('span', {}, ...(isNamed ? [] : [swatch(line.color, line.style)]), name);
    });
    return make(
      'table',
      { className: 'values' },
      make('thead', {}, tableRow('th', isNamed ? ['Run', ...heads] : heads)),
      make('tbody', {}, ...rows),
    );
  }

  #onCursor(plot: uPlot): void {
    const { left } = plot.cursor;
    this.#showValues(left === undefined || left < 0 ? null : plot.posToVal(left, 'x'));
  }

  /** @param x null: the last values */
  #showValues(x: number | null): void {
    for (const [line, cell] of this.#cells) {
      const { points } = line;
      const index = x === null ? lastKnown(points.y) : nearest(points.x, x);
      const at = points.x[index];
      cell.textContent = this.#content.format(points.y[index]);
      cell.title = at === undefined ? '' : this.#placeText(at);
      cell.dataset['x'] = String(at ?? '');
      // Validations are rare, so the nearest one may be far away.
      if (line.style === 'dots' && at !== undefined) {
        cell.append(make('small', {}, `at ${this.#placeText(at)}`));
      }
    }
    this.#place.textContent = x === null ? 'last values' : this.#placeText(Math.max(0, x));
  }

  #placeText(x: number): string {
    return this.#settings.axis === 'time' ? duration(x) : `step ${whole(x)}`;
  }

  #onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const plot = this.#plot;
    const { min = 0, max = 1 } = plot.scales['x'] ?? {};
    const { full, onZoom } = this.#settings;
    const { left = -10 } = plot.cursor;
    const width = plot.over.clientWidth;
    const position = left < 0 ? width / 2 : left;
    const move = (to: number) =>
      plot.setCursor({ left: Math.min(width, Math.max(0, to)), top: 10 });
    const zoom = (factor: number) => {
      const center = plot.posToVal(position, 'x');
      const span = Math.min(full.max - full.min, (max - min) * factor);
      const from = Math.max(full.min, Math.min(full.max - span, center - span / 2));
      onZoom({ min: from, max: from + span });
    };
    const stride = event.shiftKey ? 40 : 4;
    const actions: Readonly<Record<string, () => void>> = {
      ArrowLeft: () => move(left < 0 ? width : position - stride),
      ArrowRight: () => move(left < 0 ? 0 : position + stride),
      '+': () => zoom(0.5),
      '=': () => zoom(0.5),
      '-': () => zoom(2),
      '0': () => onZoom(null),
    };
    const action = actions[event.key];
    if (action === undefined) return;
    event.preventDefault();
    action();
  }
}

/** A sample of a line, for tables. */
export function swatch(color: number, style: Line['style'] = 'line'): HTMLElement {
  const element = make('span', { className: `swatch swatch-${style}`, 'aria-hidden': 'true' });
  element.style.setProperty('--color', lineColor(color));
  return element;
}

function depth({ style }: Line): number {
  return style === 'faint' ? 0 : 1;
}

function seriesOf({ color, style, isDashed, points: { x } }: Line): uPlot.Series {
  const stroke = cssValue(`--line-${color % 8}`);
  // Where many steps share a pixel, they would hide the smooth line.
  const faint = `${stroke}${x.length > 1000 ? '48' : '90'}`;
  return {
    stroke: style === 'faint' ? faint : stroke,
    width: style === 'faint' ? 1 : 2,
    ...(isDashed ? { dash: [6, 4] } : {}),
    points: style === 'dots' ? { show: true, size: 6, fill: stroke } : { show: false },
  };
}

/** The index of the point of a series that is nearest to the cursor: lines have their points at different places. */
function nearestDrawn(plot: uPlot, series: number, index: number): number {
  const values = plot.data[series] ?? [];
  const isKnown = (at: number) => values[at] !== null && values[at] !== undefined;
  if (series === 0 || isKnown(index)) return index;
  for (let distance = 1; distance < 5000; distance++) {
    if (isKnown(index - distance)) return index - distance;
    if (isKnown(index + distance)) return index + distance;
  }
  return index;
}

function nearest(xs: readonly number[], x: number): number {
  const next = firstNotBelow(xs, x);
  if (next === 0) return 0;
  if (next >= xs.length) return xs.length - 1;
  return x - (xs[next - 1] as number) <= (xs[next] as number) - x ? next - 1 : next;
}

function lastKnown(values: readonly (number | null)[]): number {
  return values.findLastIndex((value) => value !== null);
}
