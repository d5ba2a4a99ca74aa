/**
 * Refuses an options object that is no plain object or has keys that nobody reads.
 *
 * @param owner what takes the options, for the message: `'makeModel'`
 * @param options the object that came, or undefined
 * @param valid the names that `owner` knows
 * @throws TypeError naming the unknown key and all valid ones
 */
export function checkOptions(owner: string, options: unknown, valid: readonly string[]): void {
  if (options === undefined) return;
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new TypeError(`${owner}: options must be an object, got ${describe(options)}`);
  }
  for (const key of Object.keys(options)) {
    if (!valid.includes(key)) {
      throw new TypeError(
        `${owner}: unknown option "${key}"; valid options: ${[...valid].sort().join(', ')}`,
      );
    }
  }
}

/** A short name of any value for error messages: `null`, `a string "ab"`, `an array of 3`. */
export function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return `an array of ${value.length}`;
  switch (typeof value) {
    case 'undefined':
      return 'undefined';
    case 'string':
      return `the string ${JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)}`;
    case 'number':
    case 'boolean':
      return String(value);
    case 'bigint':
      return `${value}n`;
    case 'function':
      return `the function ${value.name || '(anonymous)'}`;
    case 'object':
      return `a ${value.constructor?.name ?? 'object without prototype'}`;
    default:
      return `a ${typeof value}`;
  }
}

/** Checks an integer option of at least `minimum`; returns it. @throws RangeError, TypeError */
export function checkInteger(
  owner: string,
  name: string,
  value: unknown,
  minimum: number,
  maximum: number = Number.MAX_SAFE_INTEGER,
): number {
  if (typeof value !== 'number') {
    throw new TypeError(`${owner}: ${name} must be an integer, got ${describe(value)}`);
  }
  if (!Number.isSafeInteger(value) || value < minimum || value > maximum) {
    const range =
      maximum === Number.MAX_SAFE_INTEGER ? `at least ${minimum}` : `from ${minimum} to ${maximum}`;
    throw new RangeError(`${owner}: ${name} must be an integer ${range}, got ${value}`);
  }
  return value;
}

/** Checks a probability in [0, 1]; returns it. @throws RangeError, TypeError */
export function checkProbability(owner: string, name: string, value: unknown): number {
  if (typeof value !== 'number') {
    throw new TypeError(`${owner}: ${name} must be a number from 0 to 1, got ${describe(value)}`);
  }
  if (!(value >= 0 && value <= 1)) {
    throw new RangeError(`${owner}: ${name} must be a number from 0 to 1, got ${value}`);
  }
  return value;
}
