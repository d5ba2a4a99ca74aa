import type { Module } from './module.js';
import { registeredIn } from './registration.js';

/** The text of `Module.toString`: PyTorch's layout, runs of equal list members folded. */
export function describeModule(module: Module, extra: (module: Module) => string): string {
  const header = module.constructor.name;
  const settings = extra(module);
  const children = folded(
    registeredIn(module).children.map(({ name, value }) => ({
      first: name,
      last: name,
      count: 1,
      text: describeModule(value, extra),
    })),
  );
  if (children.length === 0) return `${header}(${settings})`;
  const lines = children.map(({ first, last, count, text }) => {
    const label = count === 1 ? `(${first}): ` : `(${first}-${last}): ${count} x `;
    return `  ${label}${text.replaceAll('\n', '\n  ')}`;
  });
  if (settings !== '') lines.unshift(`  ${settings}`);
  return [`${header}(`, ...lines, ')'].join('\n');
}

interface Line {
  first: string;
  last: string;
  count: number;
  text: string;
}

/** Joins neighbours with numbers as names and the same text. */
function folded(lines: Line[]): Line[] {
  const result: Line[] = [];
  for (const line of lines) {
    const previous = result.at(-1);
    const foldable = previous?.text === line.text && /^\d+$/.test(line.first);
    if (previous !== undefined && foldable && /^\d+$/.test(previous.first)) {
      previous.last = line.last;
      previous.count++;
    } else {
      result.push(line);
    }
  }
  return result;
}
