/** The loss curves of a run as an SVG image. */
import { checkInteger, checkOptions, checkString } from '../../runtime/arguments.js';
import { checkHistory, type History } from './history.js';

const colors = {
  step: '#a8c7ea',
  train: '#1f5fa8',
  validation: '#d9541e',
  grid: '#e6e6e6',
  text: '#333333',
};
const margin = { left: 72, right: 24, top: 48, bottom: 56 };

interface Point {
  readonly x: number;
  readonly y: number;
}

/** Options of {@link lossCurve}. */
export interface LossCurveOptions {
  /** Default `'Loss'`. */
  title?: string;
  /** Pixels, default 960, at least 700. */
  width?: number;
  /** Pixels, default 480, at least 150. */
  height?: number;
}

/**
 * Draws the training loss of each step, its mean in each epoch, and the loss of each validation.
 * Losses that are not finite are gaps.
 *
 * @returns a complete SVG document
 * @throws TypeError, RangeError if `history` is not a history or an option is invalid
 */
export function lossCurve(history: History, options: LossCurveOptions = {}): string {
  checkHistory('lossCurve', history);
  checkOptions('lossCurve', options, ['title', 'width', 'height']);
  const { title: heading = 'Loss', width = 960, height = 480 } = options;
  checkString('lossCurve', 'title', heading);
  checkInteger('lossCurve', 'width', width, 700);
  checkInteger('lossCurve', 'height', height, 150);
  const plotWidth = width - margin.left - margin.right;
  const plotHeight = height - margin.top - margin.bottom;

  const steps = bucketMeans(
    history.steps.map(({ step, loss }) => ({ x: step, y: loss })),
    plotWidth,
  );
  const train = history.epochs.map(({ step, trainLoss }) => ({ x: step, y: trainLoss }));
  const validation = validationPoints(history);
  const finite = [...steps, ...train, ...validation].filter(({ y }) => Number.isFinite(y));
  const title = escapeXml(heading);
  // Not Math.max(...values): a long run may exceed the maximum number of arguments.
  const lastStep = finite.reduce((most, { x }) => Math.max(most, x), 1);
  const yTicks = ticks(
    finite.reduce((least, { y }) => Math.min(least, y), Infinity),
    finite.reduce((most, { y }) => Math.max(most, y), -Infinity),
    6,
  );
  const low = yTicks.at(0) ?? 0;
  const high = yTicks.at(-1) ?? 1;
  const xOf = (x: number) => round(margin.left + (x / lastStep) * plotWidth);
  const yOf = (y: number) => round(margin.top + (1 - (y - low) / (high - low)) * plotHeight);

  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" font-family="sans-serif" font-size="13" fill="${colors.text}">`,
    `<title>${title}</title>`,
    `<rect width="${width}" height="${height}" fill="white"/>`,
    `<text x="${margin.left}" y="28" font-size="17">${title}</text>`,
  ];
  for (const tick of yTicks) {
    const y = yOf(tick);
    parts.push(
      `<line x1="${margin.left}" y1="${y}" x2="${width - margin.right}" y2="${y}" stroke="${colors.grid}"/>`,
      `<text x="${margin.left - 8}" y="${y + 4}" text-anchor="end">${tickText(tick)}</text>`,
    );
  }
  const bottom = margin.top + plotHeight;
  for (const tick of ticks(0, lastStep, 8).filter(
    (value) => value <= lastStep && Number.isInteger(value),
  )) {
    const x = xOf(tick);
    parts.push(
      `<line x1="${x}" y1="${bottom}" x2="${x}" y2="${bottom + 5}" stroke="${colors.text}"/>`,
      `<text x="${x}" y="${bottom + 20}" text-anchor="middle">${tickText(tick)}</text>`,
    );
  }
  parts.push(
    `<path d="M${margin.left} ${margin.top}V${bottom}H${width - margin.right}" fill="none" stroke="${colors.text}"/>`,
    `<text x="${margin.left + plotWidth / 2}" y="${height - 14}" text-anchor="middle">step</text>`,
    `<text transform="translate(20 ${margin.top + plotHeight / 2}) rotate(-90)" text-anchor="middle">loss per target token</text>`,
    curve(steps, xOf, yOf, colors.step, 1, false),
    curve(train, xOf, yOf, colors.train, 2, true),
    curve(validation, xOf, yOf, colors.validation, 2, true),
  );
  if (finite.length === 0) {
    parts.push(
      `<text x="${margin.left + plotWidth / 2}" y="${margin.top + plotHeight / 2}" text-anchor="middle">no finite loss yet</text>`,
    );
  }
  parts.push(...legend(width, validation.length > 0), '</svg>', '');
  return parts.join('\n');
}

/** Of all validations, also those within epochs; old histories have only those at the end of each. */
function validationPoints({ validations, epochs }: History): Point[] {
  if (validations.length > 0) return validations.map(({ step, loss }) => ({ x: step, y: loss }));
  return epochs.flatMap(({ step, validationLoss }) =>
    validationLoss === null ? [] : [{ x: step, y: validationLoss }],
  );
}

/** At most `buckets` points, each the mean of its neighbours, to keep the image of a long run small. */
function bucketMeans(points: readonly Point[], buckets: number): Point[] {
  if (points.length <= buckets) return [...points];
  const means: Point[] = [];
  for (let bucket = 0; bucket < buckets; bucket++) {
    const from = Math.floor((bucket * points.length) / buckets);
    const to = Math.floor(((bucket + 1) * points.length) / buckets);
    const members = points.slice(from, to);
    const mean = (pick: (point: Point) => number) =>
      members.reduce((sum, point) => sum + pick(point), 0) / members.length;
    means.push({ x: mean(({ x }) => x), y: mean(({ y }) => y) });
  }
  return means;
}

/** Round values that enclose `low` and `high`, about `count` of them. */
function ticks(low: number, high: number, count: number): number[] {
  if (!(low <= high)) return [0, 0.5, 1];
  const range = high > low ? high - low : Math.max(Math.abs(high), 1);
  const rough = range / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  const first = Math.floor(low / step);
  const last = Math.max(Math.ceil(high / step), first + 1);
  return Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
}

function tickText(value: number): string {
  return Number(value.toPrecision(6)).toLocaleString('en-US', { maximumFractionDigits: 6 });
}

function curve(
  points: readonly Point[],
  xOf: (x: number) => number,
  yOf: (y: number) => number,
  color: string,
  strokeWidth: number,
  dots: boolean,
): string {
  let path = '';
  let circles = '';
  let penDown = false;
  for (const { x, y } of points) {
    if (!Number.isFinite(y)) {
      penDown = false;
      continue;
    }
    path += `${penDown ? 'L' : 'M'}${xOf(x)} ${yOf(y)}`;
    if (dots) circles += `<circle cx="${xOf(x)}" cy="${yOf(y)}" r="3.5" fill="${color}"/>`;
    penDown = true;
  }
  if (path === '') return '';
  return `<path d="${path}" fill="none" stroke="${color}" stroke-width="${strokeWidth}" stroke-linejoin="round"/>${circles}`;
}

function legend(width: number, hasValidation: boolean): string[] {
  const entries: [string, string, number][] = [
    ['train, each step', colors.step, 1],
    ['train, epoch mean', colors.train, 2],
  ];
  if (hasValidation) entries.push(['validation', colors.validation, 2]);
  const entryWidth = 185;
  return entries.map(([label, color, strokeWidth], index) => {
    const x = width - margin.right - (entries.length - index) * entryWidth;
    return (
      `<line x1="${x}" y1="24" x2="${x + 24}" y2="24" stroke="${color}" stroke-width="${strokeWidth + 1}"/>` +
      `<text x="${x + 30}" y="28">${label}</text>`
    );
  });
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
