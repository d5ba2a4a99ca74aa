/** Requirements of wheels: `cuda-toolkit[cudart]==13.0.2; platform_system == "Linux"`. */
import { compareVersions } from '../native/elf.js';
import { TorchError } from '../errors.js';

/** A parsed requirement. */
export interface Requirement {
  readonly name: string;
  readonly extras: readonly string[];
  /** All of them must hold: `==13.0.*`, `>=1.2`. */
  readonly clauses: readonly { readonly operator: string; readonly version: string }[];
  /** The original text, without its marker. */
  readonly text: string;
}

/**
 * Parses a requirement.
 *
 * @param extras the extras of the requiring wheel that were requested
 * @returns null if its marker names another system, or an extra that was not requested
 */
export function parseRequirement(line: string, extras: readonly string[] = []): Requirement | null {
  const [text = '', marker = ''] = line.split(';').map((part) => part.trim());
  const [, extra] = /extra\s*==\s*["']([^"']+)["']/.exec(marker) ?? [];
  if (extra !== undefined && !extras.includes(extra)) return null;
  if (!isForThisSystem(marker)) return null;
  const match = /^(\w(?:[\w.-]*\w)?)\s*(?:\[([^\]]*)\])?\s*\(?([^)]*)\)?$/.exec(text);
  if (match?.[1] === undefined) throw unreadable(text);
  return {
    name: match[1],
    extras: (match[2] ?? '').split(',').flatMap((one) => (one.trim() ? [one.trim()] : [])),
    clauses: (match[3] ?? '').split(',').flatMap((one) => (one.trim() ? [clause(one, text)] : [])),
    text,
  };
}

/** Checks only the systems in a marker; other conditions (Python, processor) are ignored. */
function isForThisSystem(marker: string): boolean {
  const named = [
    ...marker.matchAll(/(?:platform_system|sys_platform)\s*(==|!=)\s*["'](\w+)["']/g),
  ].map(([, operator, name = '']) => ({ operator, own: name.toLowerCase() === process.platform }));
  const wanted = named.filter(({ operator }) => operator === '==');
  const excluded = named.some(({ operator, own }) => operator === '!=' && own);
  return !excluded && (wanted.length === 0 || wanted.some(({ own }) => own));
}

function clause(part: string, text: string): { operator: string; version: string } {
  const match = /^\s*(==|!=|<=|>=|<|>)\s*([\w.*+!-]+)\s*$/.exec(part);
  if (match?.[1] === undefined || match[2] === undefined) throw unreadable(text);
  return { operator: match[1], version: match[2] };
}

function unreadable(text: string): TorchError {
  return new TorchError(
    'ERR_NATIVE_LOAD',
    `the wheel requires "${text}", which only pip can resolve: install Python 3 with pip, ` +
      'or pass the wheels that it needs with --from <folder>',
  );
}

/** Whether a version satisfies a requirement; pre-releases (`2.0rc1`) never do. */
export function satisfies(version: string, { clauses }: Requirement): boolean {
  const [release = ''] = version.split('+', 1);
  if (!/^\d[\d.]*(\.post\d+)?$/.test(release)) return false;
  const plain = release.replace('.post', '.');
  return clauses.every(({ operator, version: wanted }) => {
    if (wanted.endsWith('.*')) {
      const inside = `${plain}.`.startsWith(wanted.slice(0, -1));
      return operator === '!=' ? !inside : inside;
    }
    const difference = compareVersions(plain, wanted.split('+', 1)[0] ?? '');
    switch (operator) {
      case '==':
        return difference === 0;
      case '!=':
        return difference !== 0;
      case '<=':
        return difference <= 0;
      case '>=':
        return difference >= 0;
      case '<':
        return difference < 0;
      default:
        return difference > 0;
    }
  });
}
