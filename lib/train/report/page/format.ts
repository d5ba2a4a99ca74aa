/** Numbers as texts. */

/** What stands for a number that is missing. */
export const nothing = '–';

/** `12,345` */
export function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** With as many digits as tell values of a curve apart: `2.3456`, `0.0001`, `1.2e-5`, `12,345`. */
export function short(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return nothing;
  const size = Math.abs(value);
  if (size >= 1000) return whole(value);
  if (size >= 100) return value.toFixed(2);
  if (size >= 0.01 || size === 0) return value.toFixed(4);
  return value.toExponential(3);
}

/** A percentage, or a score from 0 to 100. */
export function score(value: number | null | undefined): string {
  return value === null || value === undefined ? nothing : value.toFixed(2);
}

/** `1:02:03` */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  const two = (value: number) => String(value).padStart(2, '0');
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  return hours > 0
    ? `${hours}:${two(minutes)}:${two(whole % 60)}`
    : `${minutes}:${two(whole % 60)}`;
}

/** Marks of an axis, all in one form: `1.5M`, or `2e-4` if they are small. */
export function axisMarks(values: readonly (number | null)[]): string[] {
  const largest = Math.max(...values.map((value) => Math.abs(value ?? 0)));
  return values.map((value) => {
    if (value === null) return '';
    if (value === 0 || largest >= 0.01) {
      return value.toLocaleString('en-US', { notation: 'compact', maximumSignificantDigits: 4 });
    }
    return value.toExponential();
  });
}

/** `23.5 GiB` */
export function gibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
