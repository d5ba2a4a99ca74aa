/** Checks of arguments of any kind but tensors: options objects, numbers, texts, functions. */

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
    throw new TypeError(
      `${owner}: options must be an object, got ${describe(options)}; ${wayOut(options, valid)}`,
    );
  }
  const unknown = Object.keys(options).find((key) => !valid.includes(key));
  // What is meant for an option, such as a tensor for `mask`, has keys that are nobody's business.
  // A signal or a Map has no keys of its own, and would pass for `{}`.
  if (!isPlain(options) && (unknown !== undefined || Object.keys(options).length === 0)) {
    throw new TypeError(
      `${owner}: options must be an object such as { ${valid.join(', ')} }, got ${describe(options)}`,
    );
  }
  if (unknown !== undefined) {
    throw new TypeError(`${owner}: unknown option "${unknown}"; valid options: ${sorted(valid)}`);
  }
}

/** How to pass a value that came in place of the options: positions have no meaning here. */
function wayOut(value: unknown, valid: readonly string[]): string {
  const [only] = valid.length === 1 ? valid : [];
  const isProbability = typeof value === 'number' && value >= 0 && value <= 1;
  const name = only ?? (isProbability && valid.includes('dropout') ? 'dropout' : undefined);
  return name !== undefined && ['number', 'boolean'].includes(typeof value)
    ? `pass { ${name}: ${String(value)} }; valid options: ${sorted(valid)}`
    : `valid options: ${sorted(valid)}`;
}

function sorted(names: readonly string[]): string {
  return [...names].sort().join(', ');
}

/** Whether an object is of no class; in any realm, as test runners have several. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/**
 * As {@link checkOptions}, for what cannot do without options.
 *
 * @param needed the options without a default, for the message: `'specialIds'`
 */
export function checkRequiredOptions(
  owner: string,
  options: unknown,
  valid: readonly string[],
  needed: string,
): void {
  if (options === undefined) {
    throw new TypeError(`${owner}: options with ${needed} are needed, got undefined`);
  }
  checkOptions(owner, options, valid);
}

/**
 * An option, or its default when it is left out. Unlike `??`, null is no way to leave it out: it
 * goes to the check of the option, which refuses it as any other value of a wrong type.
 */
export function orDefault<T>(option: T | undefined, byDefault: T): T {
  return option === undefined ? byDefault : option;
}

/** The name of a method by which an object says more of itself in messages than its class. */
export const description: unique symbol = Symbol('description');

/** A short name of any value for messages: `null`, `the string "ab"`, `a Tensor [2, 3] of float32`. */
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
      return describeObject(value);
    default:
      return `a ${typeof value}`;
  }
}

function describeObject(value: object): string {
  const name = nameOfClass(value);
  const described = description in value ? value[description] : undefined;
  return withArticle(
    typeof described === 'function' ? (described.call(value, name) as string) : name,
  );
}

function nameOfClass(value: object): string {
  const { constructor } = value;
  const name = typeof constructor === 'function' ? constructor.name : '';
  return name === '' ? 'object without a class' : name;
}

function withArticle(noun: string): string {
  return /^[AEIO]/i.test(noun) ? `an ${noun}` : `a ${noun}`;
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
  const fits = (number: number) => number >= 0 && number <= 1;
  return checkNumberIn(owner, name, value, fits, 'a number from 0 to 1');
}

/** Checks a finite number of any size; returns it. @throws RangeError, TypeError */
export function checkFiniteNumber(owner: string, name: string, value: unknown): number {
  return checkNumberIn(owner, name, value, Number.isFinite, 'a finite number');
}

/** Checks a finite number of at least 0; returns it. @throws RangeError, TypeError */
export function checkNonNegative(owner: string, name: string, value: unknown): number {
  const fits = (number: number) => number >= 0 && number < Infinity;
  return checkNumberIn(owner, name, value, fits, 'a finite number of at least 0');
}

/** Checks a finite number above 0; returns it. @throws RangeError, TypeError */
export function checkPositive(owner: string, name: string, value: unknown): number {
  const fits = (number: number) => number > 0 && number < Infinity;
  return checkNumberIn(owner, name, value, fits, 'a finite number above 0');
}

/** Checks a number above 0, be it infinite; returns it. @throws RangeError, TypeError */
export function checkPositiveOrInfinite(owner: string, name: string, value: unknown): number {
  return checkNumberIn(owner, name, value, (number) => number > 0, 'a number above 0');
}

function checkNumberIn(
  owner: string,
  name: string,
  value: unknown,
  fits: (value: number) => boolean,
  expected: string,
): number {
  if (typeof value !== 'number') {
    throw new TypeError(`${owner}: ${name} must be ${expected}, got ${describe(value)}`);
  }
  if (fits(value)) return value;
  throw new RangeError(`${owner}: ${name} must be ${expected}, got ${value}`);
}

/** Checks a number, be it NaN or infinite; returns it. @throws TypeError */
export function checkNumber(owner: string, name: string, value: unknown): number {
  if (typeof value === 'number') return value;
  throw new TypeError(`${owner}: ${name} must be a number, got ${describe(value)}`);
}

/** Checks `true` or `false`; returns it. @throws TypeError */
export function checkBoolean(owner: string, name: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  throw new TypeError(`${owner}: ${name} must be true or false, got ${describe(value)}`);
}

/** Checks that a value is one of a few words; returns it. @throws TypeError listing them */
export function checkChoice<T extends string>(
  owner: string,
  name: string,
  value: unknown,
  valid: readonly T[],
): T {
  if ((valid as readonly unknown[]).includes(value)) return value as T;
  const quoted = valid.map((choice) => `'${choice}'`);
  const choices = [quoted.slice(0, -1).join(', '), quoted.at(-1)].join(' or ');
  throw new TypeError(`${owner}: ${name} must be ${choices}, got ${describe(value)}`);
}

/** Checks a string, which may be empty; returns it. @throws TypeError */
export function checkString(owner: string, name: string, value: unknown): string {
  if (typeof value === 'string') return value;
  throw new TypeError(`${owner}: ${name} must be a string, got ${describe(value)}`);
}

/** Checks the path of a file or folder as a string; returns it. @throws TypeError */
export function checkPath(owner: string, name: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value;
  throw new TypeError(`${owner}: ${name} must be a path, got ${describe(value)}`);
}

/** Checks an array, holes and elements not looked at. @throws TypeError naming `expected` */
export function checkArray(
  owner: string,
  name: string,
  value: unknown,
  expected: string,
): asserts value is readonly unknown[] {
  if (Array.isArray(value)) return;
  throw new TypeError(`${owner}: ${name} must be ${expected}, got ${describe(value)}`);
}

/** Checks an array of strings without holes; returns it. @throws TypeError naming the element */
export function checkStrings(owner: string, name: string, value: unknown): readonly string[] {
  if (typeof value === 'string') {
    throw new TypeError(
      `${owner}: ${name} must be an array of strings, got ${describe(value)}; for a single one pass [text]`,
    );
  }
  checkArray(owner, name, value, 'an array of strings');
  // By index: forEach would pass over the holes of an array.
  for (let index = 0; index < value.length; index++) {
    checkString(owner, `${name}[${index}]`, value[index]);
  }
  return value as readonly string[];
}

/**
 * Checks an object, functions and arrays excepted; returns it as a record.
 * @throws TypeError naming `expected`
 */
export function checkObject(
  owner: string,
  name: string,
  value: unknown,
  expected: string,
): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Readonly<Record<string, unknown>>;
  }
  throw new TypeError(`${owner}: ${name} must be ${expected}, got ${describe(value)}`);
}

/** @throws TypeError naming `expected` unless `value` is a function */
export function checkFunction(
  owner: string,
  name: string,
  value: unknown,
  expected = 'a function',
): void {
  if (typeof value === 'function') return;
  throw new TypeError(`${owner}: ${name} must be ${expected}, got ${describe(value)}`);
}

/**
 * @param wayOut how to get an instance: `'Tokenizer.fromFile(…)'`
 * @throws TypeError unless `value` is an instance of the class
 */
export function checkInstance<T>(
  owner: string,
  name: string,
  value: unknown,
  // Constructors take anything here: the class is only compared with, never called.
  type: { readonly name: string; readonly prototype: T },
  wayOut: string,
): asserts value is T {
  if (value instanceof (type as unknown as new () => object)) return;
  throw new TypeError(
    `${owner}: ${name} must be ${withArticle(type.name)}, got ${describe(value)}; make one with ${wayOut}`,
  );
}

/** @throws TypeError unless `value` is an object with all these methods, naming those it lacks */
export function checkMethods(
  owner: string,
  name: string,
  value: unknown,
  methods: readonly string[],
  expected: string,
): void {
  const object = checkObject(owner, name, value, expected);
  const missing = methods.filter((method) => typeof object[method] !== 'function');
  if (missing.length === 0) return;
  throw new TypeError(
    `${owner}: ${name} must be ${expected}, got ${describe(value)} without the ` +
      `${missing.length === 1 ? 'method' : 'methods'} ${missing.join(', ')}`,
  );
}

/** Checks an optional AbortSignal; returns it. @throws TypeError */
export function checkSignal(owner: string, name: string, value: unknown): AbortSignal | undefined {
  if (value === undefined) return undefined;
  if (isSignal(value)) return value;
  const inner = typeof value === 'object' && value !== null && 'signal' in value && value.signal;
  const wayOut = isSignal(inner) ? '; pass its signal: controller.signal' : '';
  throw new TypeError(`${owner}: ${name} must be an AbortSignal, got ${describe(value)}${wayOut}`);
}

/** By its members, since test runners and browsers' polyfills bring classes of their own. */
function isSignal(value: unknown): value is AbortSignal {
  return (
    typeof value === 'object' &&
    value !== null &&
    'aborted' in value &&
    typeof value.aborted === 'boolean' &&
    'throwIfAborted' in value &&
    typeof value.throwIfAborted === 'function'
  );
}

/** Whether `for await` can go through an object. */
export function isIterable(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const object = value as { [Symbol.iterator]?: unknown; [Symbol.asyncIterator]?: unknown };
  return (
    typeof object[Symbol.asyncIterator] === 'function' ||
    typeof object[Symbol.iterator] === 'function'
  );
}
