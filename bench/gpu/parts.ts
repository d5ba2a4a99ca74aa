/** The parts of a run: each has a time limit, and a failure of one does not end the others. */
import type { Deadline } from './deadline.js';

/** How a part ended. */
export interface PartResult {
  readonly name: string;
  readonly status: 'passed' | 'failed' | 'skipped';
  readonly seconds: number;
  /** Why it failed or was skipped. */
  readonly reason?: string;
  /** Its results; for a failed part, those found before the failure. */
  readonly found?: unknown;
}

/** A part failed after it had found results. */
export class PartFailed extends Error {
  readonly found: unknown;

  constructor(message: string, found: unknown) {
    super(message);
    this.found = found;
  }
}

/** The part does not apply to this machine. */
export class PartSkipped extends Error {}

export interface Part {
  readonly name: string;
  /** Time limit in seconds; less if the run itself has less time left. */
  readonly limit: number;
  /** Parts that this one depends on. */
  readonly needs?: readonly string[];
  /** @throws PartFailed, PartSkipped, or any other error for a failure without findings */
  readonly run: (seconds: number) => Promise<unknown>;
}

/**
 * Runs the parts in turn.
 *
 * @param done is called with the results so far after every part
 */
export async function runParts(
  parts: readonly Part[],
  deadline: Deadline,
  done: (results: readonly PartResult[]) => Promise<void>,
): Promise<PartResult[]> {
  const results: PartResult[] = [];
  for (const part of parts) {
    results.push(await runPart(part, deadline, results));
    await done(results);
  }
  return results;
}

async function runPart(
  { name, limit, needs = [], run }: Part,
  deadline: Deadline,
  before: readonly PartResult[],
): Promise<PartResult> {
  const lacking = needs.find(
    (need) => before.find((result) => result.name === need)?.status !== 'passed',
  );
  if (lacking !== undefined) {
    return { name, status: 'skipped', seconds: 0, reason: `${lacking} did not pass` };
  }
  const allowed = deadline.allow(limit);
  if (allowed === null) return { name, status: 'skipped', seconds: 0, reason: 'no time was left' };
  const start = performance.now();
  const seconds = (): number => (performance.now() - start) / 1000;
  try {
    const found = await run(allowed);
    return { name, status: 'passed', seconds: seconds(), found };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    if (error instanceof PartSkipped)
      return { name, status: 'skipped', seconds: seconds(), reason };
    const found = error instanceof PartFailed ? { found: error.found } : {};
    return { name, status: 'failed', seconds: seconds(), reason, ...found };
  }
}

/** 1 if a part failed or did not run because no time was left. */
export function exitCode(results: readonly PartResult[]): 0 | 1 {
  return results.some(({ status, reason }) => status === 'failed' || reason === 'no time was left')
    ? 1
    : 0;
}
