// @ts-check
// The lines in which two texts differ, for display: `- ` only in the first, `+ ` only in the second.

/**
 * @param {string} before
 * @param {string} after
 * @param {number} limit
 * @returns {string[]} at most `limit` lines, with a count of the rest
 */
export function differentLines(before, after, limit = 60) {
  const a = before.split('\n');
  const b = after.split('\n');
  /** @type {string[]} */
  const found = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && a[i] === b[j]) {
      i++;
      j++;
      continue;
    }
    const [skipA, skipB] = nextCommon(a, i, b, j);
    for (; i < skipA; i++) found.push(`- ${a[i]}`);
    for (; j < skipB; j++) found.push(`+ ${b[j]}`);
  }
  if (found.length <= limit) return found;
  return [...found.slice(0, limit), `… and ${found.length - limit} more lines`];
}

/**
 * The nearest positions at which both texts have the same line: those that skip the fewest lines.
 *
 * @param {readonly string[]} a
 * @param {number} i
 * @param {readonly string[]} b
 * @param {number} j
 * @returns {[number, number]}
 */
function nextCommon(a, i, b, j) {
  for (let left = 1; left <= a.length - i + b.length - j; left++) {
    for (let fromA = 0; fromA <= left; fromA++) {
      const [x, y] = [i + fromA, j + left - fromA];
      if (x < a.length && y < b.length && a[x] === b[y]) return [x, y];
    }
  }
  return [a.length, b.length];
}
