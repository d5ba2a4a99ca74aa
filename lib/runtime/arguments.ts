/** Checks of arguments of any kind but tensors: options objects, numbers, texts, functions. */

/**
 * Rejects options that are not a plain object or that have unknown keys.
 *
 * @param owner the function or class with these options, for the message: `'makeModel'`
 * @param options the options that were passed, or undefined
 * @param valid the names that `owner` accepts
 * @throws TypeError naming the unknown key and all valid ones
 */
export function checkOptions(owner: string, options: unknown, valid: readonly string[]): void {
  if (options === undefined) return;
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new TypeError(
      `${owner}: options must be an object, got ${describe(options)}; ${howToPass(options, valid)}`,
    );
  }
  const unknown = Object.keys(options).find((key) => !valid.includes(key));
  // If this is meant as the value of an option, such as a tensor for `mask`, naming its keys would
  // not help. An AbortSignal or a Map has no own keys, and would pass as `{}`.
  if (!isPlain(options) && (unknown !== undefined || Object.keys(options).length === 0)) {
    throw new TypeError(
      `${owner}: options must be an object such as { ${valid.join(', ')} }, got ${describe(options)}`,
    );
  }
  if (unknown !== undefined) {
    throw new TypeError(`${owner}: unknown option "${unknown}"; valid options: ${sorted(valid)}`);
  }
}

/** How to pass a value that was given in place of the options object. */
function howToPass(value: unknown, valid: readonly string[]): string {
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

/** Whether an object is not an instance of a class; works across realms, as in test runners. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/**
 * Like {@link checkOptions}, for functions that require options.
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
    throw new TypeError(`${owner}: options with ${needed} are required, got undefined`);
  }
  checkOptions(owner, options, valid);
}

/**
 * An option, or its default if it is undefined. Unlike `??`, this keeps null, which the check of
 * the option then rejects like any other value of the wrong type.
 */
export function orDefault<T>(option: T | undefined, byDefault: T): T {
  return option === undefined ? byDefault : option;
}

/** The name of a method that returns how messages describe an object, instead of its class. */
export const description: unique symbol = Symbol('description');

/** Describes any value in messages: `null`, `the string "ab"`, `a Tensor [2, 3] of float32`. */
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

/** Checks a number above 0, which may be infinite; returns it. @throws RangeError, TypeError */
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

/** Checks a number, which may be NaN or infinite; returns it. @throws TypeError */
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

/** Checks an array, but not its elements. @throws TypeError naming `expected` */
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
      `${owner}: ${name} must be an array of strings, got ${describe(value)}; for a single string, pass [text]`,
    );
  }
  checkArray(owner, name, value, 'an array of strings');
  // By index, because forEach skips holes.
  for (let index = 0; index < value.length; index++) {
    checkString(owner, `${name}[${index}]`, value[index]);
  }
  return value as readonly string[];
}

/**
 * Checks an object that is neither a function nor an array; returns it as a record.
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
 * @param constructedBy how to get an instance: `'Tokenizer.fromFile(…)'`
 * @throws TypeError unless `value` is an instance of the class
 */
export function checkInstance<T>(
  owner: string,
  name: string,
  value: unknown,
  // The class is only compared with, never called, so its constructor may take any arguments.
  type: { readonly name: string; readonly prototype: T },
  constructedBy: string,
): asserts value is T {
  if (value instanceof (type as unknown as new () => object)) return;
  throw new TypeError(
    `${owner}: ${name} must be ${withArticle(type.name)}, got ${describe(value)}; make one with ${constructedBy}`,
  );
}

/** @throws TypeError naming the missing methods unless `value` is an object with all of them */
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
  const fix = isSignal(inner) ? '; pass its signal: controller.signal' : '';
  throw new TypeError(`${owner}: ${name} must be an AbortSignal, got ${describe(value)}${fix}`);
}

/** By its members, because test runners and polyfills have their own AbortSignal classes. */
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

/** Whether `for await` can iterate over an object. */
export function isIterable(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const object = value as { [Symbol.iterator]?: unknown; [Symbol.asyncIterator]?: unknown };
  return (
    typeof object[Symbol.asyncIterator] === 'function' ||
    typeof object[Symbol.iterator] === 'function'
  );
}
