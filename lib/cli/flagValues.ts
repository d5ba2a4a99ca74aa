/** Values of command-line flags: text in, checked value out. */
import { InvalidArgumentError } from 'commander';
import { isDeviceName, type DeviceChoice } from '../tensor/device.js';

/** An integer from `minimum` to `maximum`. */
export function integer(minimum: number, maximum = Number.MAX_SAFE_INTEGER) {
  return (text: string): number => {
    const value = /^[+-]?\d+$/.test(text) ? Number(text) : NaN;
    if (!Number.isSafeInteger(value) || value < minimum || value > maximum) {
      const range =
        maximum === Number.MAX_SAFE_INTEGER ? `from ${minimum}` : `from ${minimum} to ${maximum}`;
      throw new InvalidArgumentError(`It must be an integer ${range}.`);
    }
    return value;
  };
}

/** A number above 0, such as `0.0005` or `5e-4`. */
export function positiveNumber(text: string): number {
  const value = numberOf(text);
  if (!(value > 0 && value < Infinity)) {
    throw new InvalidArgumentError('It must be a number above 0.');
  }
  return value;
}

/** A number of 0 or above. */
export function nonNegativeNumber(text: string): number {
  const value = numberOf(text);
  if (!(value >= 0 && value < Infinity)) {
    throw new InvalidArgumentError('It must be a number of 0 or above.');
  }
  return value;
}

/** A number from 0 to 1. */
export function probability(text: string): number {
  const value = numberOf(text);
  if (!(value >= 0 && value <= 1))
    throw new InvalidArgumentError('It must be a number from 0 to 1.');
  return value;
}

/** `auto`, `cpu`, `cuda` or `cuda:1`. */
export function deviceName(text: string): DeviceChoice {
  if (isDeviceName(text)) return text;
  throw new InvalidArgumentError('It must be auto, cpu, cuda or cuda:<number>.');
}

/** The dtypes that training supports. */
export function trainingDType(text: string): 'float32' | 'float64' | 'bfloat16' | 'float16' {
  if (text === 'bf16') return 'bfloat16';
  if (text === 'fp16') return 'float16';
  if (text === 'float32' || text === 'float64' || text === 'bfloat16' || text === 'float16') {
    return text;
  }
  throw new InvalidArgumentError('It must be float32, float64, bf16 or fp16.');
}

/** A token of the tokenizer, or its id. */
export function tokenOrId(text: string): string | number {
  if (text === '') throw new InvalidArgumentError('It must be a token or its id.');
  return /^\d+$/.test(text) ? Number(text) : text;
}

/** A non-empty name or path. */
export function nonEmpty(text: string): string {
  if (text === '') throw new InvalidArgumentError('It must not be empty.');
  return text;
}

/** A path. Shells do not expand the tilde in `'~/x'` and in `--out=~/x`. */
export function path(text: string): string {
  if (/^~([\w-]*\/|$)/.test(text)) {
    throw new InvalidArgumentError(
      'The shell does not expand ~ inside quotes or after =: use $HOME instead, or ./~ for a file ' +
        'of that name.',
    );
  }
  return nonEmpty(text);
}

/** The character that separates cells. */
export function delimiter(text: string): string {
  const character = text === 'tab' || text === '\\t' ? '\t' : text;
  if (character.length === 1 && !'"\r\n'.includes(character)) return character;
  throw new InvalidArgumentError(
    'It must be tab, or one character that is not a quote or line end.',
  );
}

function numberOf(text: string): number {
  return text.trim() === '' ? NaN : Number(text);
}
