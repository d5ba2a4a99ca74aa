/**
 * Returns the first key that occurs twice in one object of a valid JSON text, or null.
 *
 * JSON.parse silently keeps the last of two equal keys; a file that names a tensor twice
 * must be refused instead. Keys are compared after decoding, so `"a"` equals `"\u0061"`.
 */
export function findDuplicateKey(json: string): string | null {
  // One entry per nesting level: the keys seen so far in an object, null for an array.
  const levels: (Set<string> | null)[] = [];
  let keyMayFollow = false;
  for (let at = 0; at < json.length; at++) {
    switch (json[at]) {
      case '{':
        levels.push(new Set());
        keyMayFollow = true;
        break;
      case '[':
        levels.push(null);
        break;
      case '}':
      case ']':
        levels.pop();
        break;
      case ',':
        keyMayFollow = levels.at(-1) !== null;
        break;
      case '"': {
        const end = endOfString(json, at);
        const keys = levels.at(-1);
        if (keyMayFollow && keys) {
          const key = JSON.parse(json.slice(at, end)) as string;
          if (keys.has(key)) return key;
          keys.add(key);
        }
        keyMayFollow = false;
        at = end - 1;
        break;
      }
      default:
    }
  }
  return null;
}

/** The index after the closing quote of the string that opens at `start`. */
function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at + 1;
}
