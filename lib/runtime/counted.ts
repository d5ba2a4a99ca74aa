/**
 * A count with its noun: `1 step`, `2 steps`.
 *
 * @param many the plural; default: the noun with an s
 */
export function counted(count: number, noun: string, many = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : many}`;
}
