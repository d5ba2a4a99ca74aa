import type { Module } from './module.js';
import { registeredIn } from './registration.js';

/** Modules being described, to detect cycles. */
const inProgress = new Set<Module>();

/**
 * Implements `Module.toString`, in PyTorch's layout.
 *
 * @param settings text inside the parentheses; may have several lines
 * @param options `fold`: consecutive children with the same text share a line, as in lists
 */
export function describeModule(
  module: Module,
  settings: string,
  options: { fold: boolean },
): string {
  const name = module.constructor.name;
  // Printing is used for debugging, so a cycle is shown rather than rejected.
  if (inProgress.has(module)) return `${name}([Circular])`;
  inProgress.add(module);
  try {
    const children = registeredIn(module).children.map((child) => ({
      first: child.name,
      last: child.name,
      count: 1,
      text: child.value.toString(),
    }));
    if (children.length === 0 && !settings.includes('\n')) return `${name}(${settings})`;
    const lines = (options.fold ? folded(children) : children).map(lineOf);
    if (settings !== '') lines.unshift(settings);
    return [`${name}(`, ...lines.map(indented), ')'].join('\n');
  } finally {
    inProgress.delete(module);
  }
}

interface Run {
  readonly first: string;
  last: string;
  count: number;
  readonly text: string;
}

/** Merges consecutive children with the same text. */
function folded(children: readonly Run[]): Run[] {
  const runs: Run[] = [];
  for (const child of children) {
    const previous = runs.at(-1);
    if (previous?.text === child.text) {
      previous.last = child.last;
      previous.count++;
    } else {
      runs.push({ ...child });
    }
  }
  return runs;
}

function lineOf({ first, last, count, text }: Run): string {
  return count === 1 ? `(${first}): ${text}` : `(${first}-${last}): ${count} x ${text}`;
}

function indented(text: string): string {
  return `  ${text.replaceAll('\n', '\n  ')}`;
}
