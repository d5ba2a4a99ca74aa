/**
 * The first key in which two JSON values differ, as a path such as `model.norm.eps`, with both values;
 * null if they are equal.
 */
export function differingKey(first: unknown, second: unknown, path = ''): string | null {
  if (isObject(first) && isObject(second)) {
    for (const key of new Set([...Object.keys(first), ...Object.keys(second)])) {
      const inner = path === '' ? key : `${path}.${key}`;
      const found = differingKey(first[key], second[key], inner);
      if (found !== null) return found;
    }
    return null;
  }
  if (Object.is(first, second)) return null;
  return `${path === '' ? 'the whole' : path} (${shown(second)}, there ${shown(first)})`;
}

/** Arrays too: their indices are keys. */
function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function shown(value: unknown): string {
  if (value === undefined) return 'missing';
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
