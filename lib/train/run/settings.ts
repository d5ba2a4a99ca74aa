/** Settings of a run, compared when it is resumed: it must go on as it began. */
import type { JsonValue } from '../../io/modelConfig.js';
import { TorchError } from '../../runtime/errors.js';

/** Plain values by name. */
export type Settings = { readonly [name: string]: JsonValue };

/**
 * The names of settings that differ, each with both values: `clip was 1, is 5`.
 *
 * @param saved those the run was started with
 */
export function differences(saved: Settings, now: Settings): string[] {
  const names = [...new Set([...Object.keys(saved), ...Object.keys(now)])];
  return names.flatMap((name) => {
    const [before, after] = [canonical(saved[name]), canonical(now[name])];
    return before === after ? [] : [`${name} was ${before}, is ${after}`];
  });
}

/**
 * Refuses to continue a run with other settings.
 *
 * @param folder of the run
 * @throws TorchError ERR_CHECKPOINT with all differences
 */
export function checkSameSettings(folder: string, saved: Settings, now: Settings): void {
  const found = differences(saved, now);
  if (found.length === 0) return;
  throw new TorchError(
    'ERR_CHECKPOINT',
    `${folder}: this run cannot be resumed with other settings: ${found.join('; ')}. Use the settings it ` +
      'was started with, or start a new run from its weights',
  );
}

/**
 * @param extend whether the limits may differ
 * @throws TorchError ERR_CHECKPOINT unless they may, or are the same
 */
export function checkSameLimits(
  folder: string,
  saved: Settings,
  now: Settings,
  extend: boolean,
): void {
  const found = differences(saved, now);
  if (found.length === 0 || extend) return;
  throw new TorchError(
    'ERR_CHECKPOINT',
    `${folder}: this run was to end elsewhere: ${found.join('; ')}. To train for longer, or to end ` +
      'earlier, pass extend: true',
  );
}

/** JSON with sorted keys; a missing value is `not set`. */
function canonical(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return 'not set';
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
