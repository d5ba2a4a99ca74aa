/** Selects parameters and modules by patterns of their names. */
import { describe } from '../../runtime/arguments.js';

/**
 * A name such as `'generator.proj.weight'`, in which each `*` stands for any characters, dots included
 * (`'encoder.*'`, `'*.bias'`), or a RegExp that matches a part of the name (`/layers\.[01]\./`).
 */
export type NamePattern = string | RegExp;

/** One pattern, or several, of which a name matches at least one. */
export type NamePatterns = NamePattern | readonly NamePattern[];

/** How many names a message lists. */
const shownNames = 5;

/** @throws TypeError unless it is a pattern or a non-empty array of patterns; returns an array */
export function checkPatterns(
  owner: string,
  name: string,
  patterns: unknown,
): readonly NamePattern[] {
  const list: readonly unknown[] = Array.isArray(patterns) ? patterns : [patterns];
  const isPattern = (value: unknown) =>
    value instanceof RegExp || (typeof value === 'string' && value !== '');
  const wrong = list.findIndex((value) => !isPattern(value));
  if (list.length > 0 && wrong < 0) return list as readonly NamePattern[];
  const given = list.length === 0 ? 'no pattern' : describe(list[wrong]);
  throw new TypeError(
    `${owner}: ${name} must be names such as 'encoder.*', or regular expressions, got ${given}`,
  );
}

/** Returns a function that tells whether a name matches one of the patterns. */
export function nameMatcher(patterns: readonly NamePattern[]): (name: string) => boolean {
  const expressions = patterns.map(expressionOf);
  return (name) => expressions.some((expression) => expression.test(name));
}

/**
 * The names that match at least one pattern, in their order.
 *
 * @param kind what the names are of, for the message: `'parameter'`
 * @throws TypeError as {@link checkPatterns}; RangeError naming a pattern that matches nothing, with
 *   names that are like it
 */
export function matchingNames(
  owner: string,
  option: string,
  kind: string,
  patterns: unknown,
  names: readonly string[],
): string[] {
  const list = checkPatterns(owner, option, patterns);
  for (const pattern of list) {
    if (names.some(nameMatcher([pattern]))) continue;
    const near = typeof pattern === 'string' ? namesLike(pattern, names) : names;
    const shown = near.slice(0, shownNames).join(', ');
    throw new RangeError(
      `${owner}: ${option} ${String(pattern)} matches no ${kind}; ` +
        (names.length === 0
          ? 'there are none'
          : `names are such as ${shown}${near.length > shownNames ? ', …' : ''}`),
    );
  }
  return names.filter(nameMatcher(list));
}

function expressionOf(pattern: NamePattern): RegExp {
  if (typeof pattern === 'string') {
    const literal = pattern.split('*').map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, '\\$&'));
    return new RegExp(`^${literal.join('.*')}$`, 's');
  }
  // With these flags, a test would start where the last one ended.
  return new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ''));
}

/** The names that are most like a pattern: by what they have in common at both ends. */
function namesLike(pattern: string, names: readonly string[]): string[] {
  const start = pattern.split('*')[0] as string;
  const end = reversed(pattern.split('*').at(-1) as string);
  const likeness = (name: string) =>
    commonStart(start, name) + (end === '' ? 0 : commonStart(end, reversed(name)));
  return names
    .map((name) => ({ name, likeness: likeness(name) }))
    .sort((a, b) => b.likeness - a.likeness)
    .map(({ name }) => name);
}

function commonStart(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return length;
}

function reversed(text: string): string {
  return [...text].reverse().join('');
}
