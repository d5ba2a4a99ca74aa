/** The tables of suite `decode`. */
import { print } from '../report.js';
import { duration, gigabytes, ratio, table } from '../table.js';
import { ownFigures, referenceName, type DecodeFigure } from './decodeFigures.js';
import type { Precision } from './decoders.js';

/** The most tokens per second in each precision. */
export type CaseLimits = Readonly<Record<Precision, number>>;

export function printFigures(
  figures: readonly DecodeFigure[],
  { oneRow, limits }: { readonly oneRow: boolean; readonly limits: CaseLimits | null },
): void {
  const own = ownFigures(figures);
  const rows = figures.map((figure) => {
    const limit = limits?.[figure.participant.precision];
    return [
      figure.name,
      figure.tokensPerSecond.toFixed(0),
      figure.range.map((rate) => rate.toFixed(0)).join('..'),
      figure.best.toFixed(0),
      ...(oneRow ? [duration(figure.step)] : []),
      ...own.map((each) =>
        each === figure ? '' : ratio(each.tokensPerSecond / figure.tokensPerSecond),
      ),
      percent(figure.equal),
      ...(limit === undefined ? [] : [limit.toFixed(0), percent(figure.tokensPerSecond / limit)]),
      gigabytes(figure.peakRss),
    ];
  });
  const head = [
    'participant',
    'tokens/s',
    'rounds',
    'shortest',
    ...(oneRow ? ['a token'] : []),
    ...own.map(({ name }) => `${name} is`),
    `equal to ${referenceName}`,
    ...(limits === null ? [] : ['limit', 'of it']),
    'peak memory',
  ];
  print(table(head, rows));
}

/** `99.2 %`; `-` for null */
export function percent(share: number | null): string {
  if (share === null) return '-';
  const value = share * 100;
  return `${Number.isInteger(value) ? value.toFixed(0) : value.toFixed(1)} %`;
}
