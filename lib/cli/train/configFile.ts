/**
 * Settings from a YAML file: its keys are the names of flags, alone or in a section named like the
 * group of the flag in `--help`. The flags' own definitions are the schema: what a flag accepts, its key
 * accepts.
 */
import type { Command, Option } from 'commander';
import { InvalidArgumentError } from 'commander';
import { closest, distance } from 'fastest-levenshtein';
import { readFile } from 'node:fs/promises';
import { isMap, isScalar, isSeq, LineCounter, parseDocument, stringify, type Node } from 'yaml';
import { TorchError } from '../../runtime/errors.js';

/** A setting in the file. */
interface Entry {
  readonly key: string;
  /** Name of its section; null if it stands alone. */
  readonly section: string | null;
  readonly value: Node | null;
  readonly line: number;
}

/**
 * Sets the options of a command that were not given on the command line.
 *
 * @param excluded names of options that a file may not set
 * @throws TorchError ERR_DATA naming the file, the line and what is valid there
 */
export async function applyConfigFile(
  command: Command,
  file: string,
  excluded: readonly string[],
): Promise<void> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw fault(`${file}: ${code === 'ENOENT' ? 'no such file' : message}`);
  }
  const options = command.options.filter((option) => {
    return option.long !== undefined && !excluded.includes(option.attributeName());
  });
  const seen = new Map<string, Entry>();
  for (const entry of entriesOf(file, text, options)) {
    const option = optionOf(file, entry, options);
    const name = option.attributeName();
    const before = seen.get(name);
    if (before !== undefined) {
      throw fault(`${file}:${entry.line}: ${entry.key} is set twice, first in line ${before.line}`);
    }
    seen.set(name, entry);
    const value = valueOf(file, entry, option);
    // Flags have priority.
    if (command.getOptionValueSource(name) === 'cli') continue;
    command.setOptionValueWithSource(name, value, 'config');
  }
  for (const [name, entry] of seen) refuseConflict(file, name, entry, seen, options);
}

/** The settings in force as such a file, with all keys in their sections. */
export function configText(command: Command, excluded: readonly string[]): string {
  const sections = new Map<string, Record<string, unknown>>();
  for (const option of command.options) {
    const name = option.attributeName();
    const value: unknown = command.getOptionValue(name);
    if (option.long === undefined || excluded.includes(name) || value === undefined) continue;
    if (isReplaced(command, option)) continue;
    const section = sectionOf(option);
    const settings = sections.get(section) ?? {};
    settings[keyOf(option)] = value;
    sections.set(section, settings);
  }
  return stringify(Object.fromEntries(sections), { lineWidth: 0 });
}

/** Whether the value is a default that another setting takes the place of. */
function isReplaced(command: Command, option: Option): boolean {
  const name = option.attributeName();
  if (command.getOptionValueSource(name) !== 'default') return false;
  return command.options.some((other) => {
    return (
      conflictsOf(other).includes(name) &&
      command.getOptionValue(other.attributeName()) !== undefined
    );
  });
}

function entriesOf(file: string, text: string, options: readonly Option[]): Entry[] {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: false });
  const [error] = document.errors;
  if (error !== undefined) {
    const [first = ''] = error.message.split('\n');
    throw fault(`${file}: not valid YAML: ${first.replace(/:$/, '')}`);
  }
  const root = document.contents;
  if (root === null) return [];
  if (!isMap(root)) throw fault(`${file}: must have keys with values, such as "epochs: 10"`);
  const sections = new Set(options.map(sectionOf));
  const entries: Entry[] = [];
  const read = (map: typeof root, section: string | null) => {
    for (const { key, value } of map.items) {
      const offset = isScalar(key) ? (key.range?.[0] ?? 0) : 0;
      const { line } = lines.linePos(offset);
      const name = isScalar(key) ? String(key.value) : '';
      if (section === null && isMap(value)) {
        if (!sections.has(name)) {
          throw fault(
            `${file}:${line}: there is no section "${name}"${nearest(name, [...sections])}; sections: ` +
              [...sections].join(', '),
          );
        }
        read(value, name);
      } else {
        entries.push({ key: name, section, value: value, line });
      }
    }
  };
  read(root, null);
  return entries;
}

function optionOf(file: string, { key, section, line }: Entry, options: readonly Option[]): Option {
  const option = options.find((one) => keyOf(one) === key);
  if (option === undefined) {
    const keys = options.filter((one) => section === null || sectionOf(one) === section).map(keyOf);
    const near = nearest(key, options.map(keyOf));
    throw fault(
      `${file}:${line}: there is no setting "${key}"${near}; settings${
        section === null ? '' : ` of ${section}`
      }: ${keys.join(', ')}`,
    );
  }
  if (section !== null && sectionOf(option) !== section) {
    throw fault(`${file}:${line}: "${key}" belongs to the section "${sectionOf(option)}"`);
  }
  return option;
}

/** The value of a setting, read as its flag would be. */
function valueOf(file: string, { key, value, line }: Entry, option: Option): unknown {
  const place = `${file}:${line}: ${key}`;
  const plain: unknown = isScalar(value) ? value.value : isSeq(value) ? value.toJSON() : null;
  if (plain === null) throw fault(`${place} has no value; remove the line for the default`);
  if (option.isBoolean() || option.negate) {
    if (typeof plain === 'boolean') return plain;
    throw fault(`${place} must be true or false, got ${JSON.stringify(plain)}`);
  }
  const parse = (one: unknown, before: unknown): unknown => {
    if (typeof one !== 'string' && typeof one !== 'number') {
      throw fault(`${place} must be one value, got ${JSON.stringify(one)}`);
    }
    try {
      const text = String(one);
      return option.parseArg === undefined ? text : option.parseArg(text, before as never);
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error;
      throw fault(`${place}: ${JSON.stringify(one)} is invalid. ${error.message}`);
    }
  };
  if (!option.variadic) return parse(plain, undefined);
  const list: unknown[] = Array.isArray(plain) ? plain : [plain];
  return list.map((one) => parse(one, undefined));
}

function refuseConflict(
  file: string,
  name: string,
  entry: Entry,
  seen: ReadonlyMap<string, Entry>,
  options: readonly Option[],
): void {
  const option = options.find((one) => one.attributeName() === name);
  for (const other of option === undefined ? [] : conflictsOf(option)) {
    const second = seen.get(other);
    if (second === undefined) continue;
    throw fault(`${file}:${entry.line}: ${entry.key} and ${second.key} exclude each other`);
  }
}

/** The key of a flag: `--batch-tokens` is `batch-tokens`, `--no-bias` is `bias`. */
function keyOf(option: Option): string {
  return (option.long ?? '').replace(/^--(no-)?/, '');
}

/** The section of a flag: its group in the help. */
function sectionOf(option: Option): string {
  const { helpGroupHeading } = option as unknown as { helpGroupHeading?: string };
  return (helpGroupHeading ?? 'general').replace(/:$/, '').toLowerCase();
}

/** Names of the options that exclude this one; Commander's types lack them. */
function conflictsOf(option: Option): readonly string[] {
  return (option as unknown as { conflictsWith: readonly string[] }).conflictsWith;
}

function nearest(name: string, names: readonly string[]): string {
  if (names.length === 0) return '';
  const found = closest(name, names);
  return distance(name, found) <= Math.max(2, found.length / 2) ? `; did you mean "${found}"?` : '';
}

function fault(message: string): TorchError {
  return new TorchError('ERR_DATA', message);
}
