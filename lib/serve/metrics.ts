/** Figures in the text format of Prometheus, version 0.0.4. */

/** Names and values of labels, such as `{ route: '/translate' }`. */
export type Labels = Readonly<Record<string, string>>;

interface Series {
  readonly labels: Labels;
  value: number;
}

interface Timings {
  readonly labels: Labels;
  /** For each limit, the number of values up to it. */
  readonly counts: number[];
  count: number;
  sum: number;
}

interface Metric {
  lines(): string[];
}

/** Limits of the buckets of a histogram, in seconds. */
const secondsLimits = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** A set of metrics, written together. */
export class Metrics {
  readonly #metrics: Metric[] = [];

  /** A number that only grows. */
  counter(name: string, help: string): { add(labels: Labels, amount?: number): void } {
    const series = new Map<string, Series>();
    this.#metrics.push({
      lines: () => [
        ...heading(name, help, 'counter'),
        ...[...series.values()].map(({ labels, value }) => line(name, labels, value)),
      ],
    });
    return {
      add(labels, amount = 1) {
        const found = seriesOf(series, labels, () => ({ labels, value: 0 }));
        found.value += amount;
      },
    };
  }

  /** A number that is read when the metrics are. */
  gauge(name: string, help: string, read: () => number, type: 'gauge' | 'counter' = 'gauge'): void {
    this.#metrics.push({ lines: () => [...heading(name, help, type), line(name, {}, read())] });
  }

  /** How long something took, in seconds. */
  seconds(name: string, help: string): { observe(labels: Labels, seconds: number): void } {
    const series = new Map<string, Timings>();
    this.#metrics.push({
      lines: () => [
        ...heading(name, help, 'histogram'),
        ...[...series.values()].flatMap((timings) => histogramLines(name, timings)),
      ],
    });
    return {
      observe(labels, seconds) {
        const found = seriesOf(series, labels, () => ({
          labels,
          counts: secondsLimits.map(() => 0),
          count: 0,
          sum: 0,
        }));
        secondsLimits.forEach((limit, index) => {
          if (seconds <= limit) found.counts[index] = (found.counts[index] as number) + 1;
        });
        found.count++;
        found.sum += seconds;
      },
    };
  }

  /** All metrics as text. */
  text(): string {
    return `${this.#metrics.flatMap((metric) => metric.lines()).join('\n')}\n`;
  }
}

function seriesOf<T>(series: Map<string, T>, labels: Labels, create: () => T): T {
  const key = JSON.stringify(labels);
  const found = series.get(key) ?? create();
  series.set(key, found);
  return found;
}

function heading(name: string, help: string, type: string): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
}

function histogramLines(name: string, { labels, counts, count, sum }: Timings): string[] {
  const buckets = secondsLimits.map((limit, index) =>
    line(`${name}_bucket`, { ...labels, le: String(limit) }, counts[index] as number),
  );
  return [
    ...buckets,
    line(`${name}_bucket`, { ...labels, le: '+Inf' }, count),
    line(`${name}_sum`, labels, sum),
    line(`${name}_count`, labels, count),
  ];
}

function line(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escapeLabel(text)}"`);
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}`;
}

function escapeLabel(text: string): string {
  return text.replace(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`));
}
