/** Formats results as text. */

/** A Markdown table that is readable as plain text: first column left-aligned, the others right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) =>
    Math.max(3, ...[title, ...rows.map((row) => row[column] ?? '')].map((text) => text.length)),
  );
  const line = (cells: readonly string[]): string => {
    const padded = widths.map((width, column) => {
      const text = cells[column] ?? '';
      return column === 0 ? text.padEnd(width) : text.padStart(width);
    });
    return `| ${padded.join(' | ')} |`;
  };
  const rule = widths.map((width, column) =>
    column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`,
  );
  return [line(head), `| ${rule.join(' | ')} |`, ...rows.map(line)].join('\n');
}

/** Three significant digits with a unit: `1.23 s`, `45.6 ms`, `789 ns`. */
export function duration(seconds: number): string {
  const units: [string, number][] = [
    ['s', 1],
    ['ms', 1e-3],
    ['µs', 1e-6],
  ];
  for (const [unit, size] of units) {
    if (seconds >= size) return `${significant(seconds / size)} ${unit}`;
  }
  return `${significant(seconds / 1e-9)} ns`;
}

/** Three significant digits: `1234` unchanged, `12.3`, `1.23`. */
export function significant(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** `2.31x` */
export function ratio(value: number): string {
  return `${significant(value)}x`;
}

/** `6.51 GB`, in powers of 1000. */
export function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(2)} GB`;
}
