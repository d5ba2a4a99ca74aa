/**
 * Prints tensors exactly as PyTorch does, so that outputs can be compared. Only the elements that are
 * shown are copied from native memory.
 */
import { inspect } from 'node:util';
import { noGrad } from './autograd.js';
import { callTensor } from './dispatch.js';
import { isFloatingPoint, type DType } from './dtype.js';
import { tidy } from './scope.js';
import type { Tensor } from './tensor.js';

// PyTorch's default print options.
const precision = 4;
const threshold = 1000;
const edgeItems = 3;
const lineWidth = 80;

const prefix = 'tensor(';

/** Formats one element, padded to the common width. */
type ElementText = (value: number | bigint) => string;

interface Layout {
  readonly values: ArrayLike<number | bigint>;
  /** Sizes of the fetched elements: at most 2 · edgeItems in dimensions that are `cut`. */
  readonly shape: readonly number[];
  /** Whether the middle of each dimension is omitted. */
  readonly cut: readonly boolean[];
  readonly text: ElementText;
  readonly width: number;
}

/** The whole text: the elements, and properties other than the default ones. */
export function formatTensor(tensor: Tensor): string {
  const { shape, dtype, numel } = tensor;
  const elements = numel === 0 ? '[]' : formatElements(tensor, shape, dtype, numel);
  return withSuffixes(prefix + elements, suffixes(tensor, shape, dtype, numel));
}

function formatElements(
  tensor: Tensor,
  shape: readonly number[],
  dtype: DType,
  numel: number,
): string {
  const cut = shape.map((size) => numel > threshold && size > 2 * edgeItems);
  const values = cut.includes(true) ? edgesOf(tensor, shape, cut) : tensor.data();
  const { text, width } = elementFormat(Array.from<number | bigint>(values), dtype);
  const shown = shape.map((size, dim) => (cut[dim] === true ? 2 * edgeItems : size));
  return formatBlock({ values, shape: shown, cut, text, width }, 0, 0, prefix.length);
}

/** The first and last elements along each dimension that is cut. */
function edgesOf(tensor: Tensor, shape: readonly number[], cut: readonly boolean[]) {
  return noGrad(() =>
    tidy(() => {
      let edges = tensor;
      shape.forEach((size, dim) => {
        if (cut[dim] !== true) return;
        const first = edges.narrow(dim, 0, edgeItems);
        const last = edges.narrow(dim, size - edgeItems, edgeItems);
        edges = callTensor('aten::cat', [first, last], dim);
      });
      return edges.data();
    }),
  );
}

/** One bracketed block: dimension `depth` and below, for the elements from `offset` on. */
function formatBlock(layout: Layout, depth: number, offset: number, indent: number): string {
  const { shape, cut, values, text } = layout;
  if (depth === shape.length) return text(values[offset] as number | bigint);
  const size = shape[depth] as number;
  const stride = shape.slice(depth + 1).reduce((product, length) => product * length, 1);
  const isVector = depth === shape.length - 1;
  const items = Array.from({ length: size }, (_item, index) =>
    formatBlock(layout, depth + 1, offset + index * stride, indent + 1),
  );
  if (cut[depth] === true) items.splice(edgeItems, 0, isVector ? ' ...' : '...');
  const gap = ' '.repeat(indent + 1);
  if (!isVector) return `[${items.join(`,${'\n'.repeat(shape.length - depth - 1)}${gap}`)}]`;
  const perLine = Math.max(1, Math.floor((lineWidth - indent) / (layout.width + 2)));
  const lines: string[] = [];
  for (let start = 0; start < items.length; start += perLine) {
    lines.push(items.slice(start, start + perLine).join(', '));
  }
  return `[${lines.join(`,\n${gap}`)}]`;
}

/** The format that aligns columns, chosen by the shown numbers that are finite and not zero. */
function elementFormat(
  values: readonly (number | bigint)[],
  dtype: DType,
): { text: ElementText; width: number } {
  const plain = plainFormat(values, dtype);
  const width = values
    .filter((value) => plain.decides(value))
    .reduce((widest: number, value) => Math.max(widest, plain.text(value).length), 1);
  return { text: (value) => plain.text(value).padStart(width), width };
}

function plainFormat(
  values: readonly (number | bigint)[],
  dtype: DType,
): { text: ElementText; decides: (value: number | bigint) => boolean } {
  const always = () => true;
  if (dtype === 'bool') return { text: (value) => (value ? 'True' : 'False'), decides: always };
  if (!isFloatingPoint(dtype)) return { text: String, decides: always };
  const decides = (value: number | bigint) => value !== 0 && Number.isFinite(value);
  const magnitudes = values.filter(decides).map((value) => Math.abs(Number(value)));
  const smallest = magnitudes.reduce((a, b) => Math.min(a, b), Infinity);
  const largest = magnitudes.reduce((a, b) => Math.max(a, b), 0);
  const whole = magnitudes.every(Number.isInteger);
  const wideRange = magnitudes.length > 0 && (largest / smallest > 1000 || largest > 1e8);
  const scientific = wideRange || (!whole && smallest < 1e-4);
  const finite = (value: number): string => {
    if (scientific) return exponential(value);
    return whole ? `${minusZero(value)}${value.toFixed(0)}.` : fixed(value);
  };
  return { text: (value) => nonFinite(Number(value)) ?? finite(Number(value)), decides };
}

function nonFinite(value: number): string | null {
  if (Number.isNaN(value)) return 'nan';
  if (value === Infinity) return 'inf';
  return value === -Infinity ? '-inf' : null;
}

/** Digits that distinguish an exact half from its neighbours: no double is this close to one. */
const guardDigits = 30;

/** Fixed notation with exact halves rounded to even, as in C and Python. */
function fixed(value: number): string {
  const exact = value.toFixed(precision + guardDigits);
  return minusZero(value) + halfToEven(value.toFixed(precision), exact);
}

/** Scientific notation, rounded the same way, with an exponent of at least two digits. */
function exponential(value: number): string {
  const [rounded = '', exponent = ''] = value.toExponential(precision).split('e');
  const [exact = '', exactExponent] = value.toExponential(precision + guardDigits).split('e');
  const mantissa = exactExponent === exponent ? halfToEven(rounded, exact) : rounded;
  return `${minusZero(value)}${mantissa}e${exponent.replace(/^([+-])(\d)$/, '$10$2')}`;
}

function halfToEven(rounded: string, exact: string): string {
  const isHalf = exact.endsWith('5'.padEnd(guardDigits, '0'));
  const down = exact.slice(0, -guardDigits);
  return isHalf && /[02468]$/.test(down) ? down : rounded;
}

/** The sign of negative zero, which JS omits. */
function minusZero(value: number): string {
  return Object.is(value, -0) ? '-' : '';
}

function suffixes(tensor: Tensor, shape: readonly number[], dtype: DType, numel: number): string[] {
  const parts: string[] = [];
  const { device, gradFn } = tensor;
  if (device !== 'cpu') parts.push(`device='${device}'`);
  if (numel === 0 && shape.length !== 1) parts.push(`size=(${shape.join(', ')})`);
  // Elements show which of these types it is; without elements, only the default type is omitted.
  const obvious: DType[] = numel === 0 ? ['float32'] : ['float32', 'int64', 'bool'];
  if (!obvious.includes(dtype)) parts.push(`dtype=torch.${dtype}`);
  if (gradFn !== null) parts.push(`grad_fn=<${gradFn}>`);
  else if (tensor.requiresGrad) parts.push('requires_grad=True');
  return parts;
}

/** Appends the suffixes, each on a new line if the line would become too long. */
function withSuffixes(text: string, parts: readonly string[]): string {
  let result = text;
  let column = text.length - text.lastIndexOf('\n') + 1;
  for (const part of parts) {
    if (column + part.length + 2 > lineWidth) {
      result += `,\n${' '.repeat(prefix.length)}${part}`;
      column = prefix.length + part.length;
    } else {
      result += `, ${part}`;
      column += part.length + 2;
    }
  }
  return `${result})`;
}

/**
 * Writes values to standard output like Python's `print`, separated by spaces and followed by a
 * newline: strings unchanged, tensors as PyTorch prints them, other values as `util.inspect` does.
 */
export function print(...values: unknown[]): void {
  const texts = values.map((value) => (typeof value === 'string' ? value : inspect(value)));
  process.stdout.write(`${texts.join(' ')}\n`);
}
