/** All charts, and what the user can choose for them. */
import type { RunReport } from '../reportData.js';
import { Chart, type Range } from './chart.js';
import { byId, make } from './dom.js';
import { chartContents, type ChartContent, type Choices } from './lines.js';

/** Draws the charts of the runs, and again whenever something is chosen. */
export class Charts {
  readonly #runs: readonly RunReport[];
  #choices: Choices = { axis: 'step', smoothing: 0, isLogarithmic: false, hidden: new Set() };
  #charts: Chart[] = [];
  #full: Range = { min: 0, max: 1 };
  /** Null: everything. */
  #zoom: Range | null = null;
  readonly #reset = make('button', { type: 'button', disabled: true }, 'Show everything');

  constructor(runs: readonly RunReport[]) {
    this.#runs = runs;
    this.#choices = { ...this.#choices, smoothing: usualSmoothing(runs) };
    byId('controls').append(...this.#controls());
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#draw());
    this.#draw();
  }

  /** Shows or hides a run. */
  setShown(run: number, isShown: boolean): void {
    const hidden = new Set(this.#choices.hidden);
    if (isShown) hidden.delete(run);
    else hidden.add(run);
    this.#choose({ hidden });
  }

  #controls(): HTMLElement[] {
    const axis = make(
      'select',
      {},
      new Option('steps', 'step'),
      new Option('training time', 'time'),
    );
    axis.addEventListener('change', () => {
      this.#zoom = null;
      this.#choose({ axis: axis.value as Choices['axis'] });
    });
    const smoothing = make('input', { type: 'range', min: '0', max: '0.99', step: '0.01' });
    smoothing.value = String(this.#choices.smoothing);
    smoothing.addEventListener('input', () => this.#choose({ smoothing: Number(smoothing.value) }));
    const logarithmic = make('input', { type: 'checkbox' });
    logarithmic.addEventListener('change', () =>
      this.#choose({ isLogarithmic: logarithmic.checked }),
    );
    this.#reset.addEventListener('click', () => this.#show(null));
    return [
      make('label', {}, 'Across ', axis),
      make('label', {}, 'Smoothing ', smoothing),
      make('label', {}, logarithmic, ' Logarithmic'),
      this.#reset,
    ];
  }

  #choose(changes: Partial<Choices>): void {
    this.#choices = { ...this.#choices, ...changes };
    this.#draw();
  }

  #draw(): void {
    for (const chart of this.#charts) chart.destroy();
    const contents = chartContents(this.#runs, this.#choices);
    this.#full = fullRange(contents);
    const { axis, isLogarithmic } = this.#choices;
    const settings = {
      runNames: this.#runs.map(({ name }) => name),
      axis,
      isLogarithmic,
      full: this.#full,
      zoom: this.#zoom ?? this.#full,
      onZoom: (range: Range | null) => this.#show(range),
    };
    this.#charts = contents.map((content) => new Chart(content, settings));
    this.#reset.disabled = this.#zoom === null;
  }

  #show(range: Range | null): void {
    this.#zoom = range;
    this.#reset.disabled = range === null;
    for (const chart of this.#charts) chart.setZoom(range ?? this.#full);
  }
}

/** That of a run of few steps is weak, so that the smooth line does not lag. */
function usualSmoothing(runs: readonly RunReport[]): number {
  const count = Math.max(...runs.map(({ loss }) => (loss.means ?? loss.points).x.length));
  return Math.round(100 * Math.max(0, Math.min(0.9, 1 - 50 / count))) / 100;
}

function fullRange(contents: readonly ChartContent[]): Range {
  const ends = contents.flatMap(({ lines }) => lines.map(({ points }) => points.x.at(-1) ?? 0));
  return { min: 0, max: Math.max(1, ...ends) };
}
