/** Part `parity of ops`. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runChild } from '../child.js';
import { PartFailed } from './parts.js';

/** A case in one dtype: one line written by tests/ops/check_ops.py. */
export interface ParityRecord {
  readonly op: string;
  readonly options: string;
  readonly dtype: string;
  readonly passed: boolean;
  /** Compared with float64 on the CPU, relative to the largest expected value. */
  readonly error?: number;
  readonly tolerance?: number;
  readonly gradientError?: number;
  readonly gradientTolerance?: number;
  /** Error of the same op on the CPU. */
  readonly cpuError?: number;
  readonly cpuGradientError?: number;
  /** Why the errors could not be computed. */
  readonly fault?: string;
}

export interface ParityFindings {
  readonly cases: number;
  readonly failed: number;
  readonly records: readonly ParityRecord[];
}

export interface ParityPlaces {
  readonly python: string;
  /** The checkout, which has tests/ops. */
  readonly repository: string;
  readonly libraries: string;
  readonly device: 'cpu' | 'cuda';
  readonly output: string;
}

/** @throws PartFailed with the records if a case failed or the program did not finish */
export async function parityOfOps(
  { python, repository, libraries, device, output }: ParityPlaces,
  seconds: number,
): Promise<ParityFindings> {
  const file = join(output, 'parity.jsonl');
  const program = join(repository, 'tests/ops/check_ops.py');
  const args = ['--libraries', libraries, '--kernels', device, '--records', file];
  const end = await runChild(python, [program, ...args], { seconds }).then(
    () => null,
    (error: unknown) => (error as Error).message,
  );
  const records = await readRecords(file);
  const failed = records.filter(({ passed }) => !passed);
  const findings = { cases: records.length, failed: failed.length, records };
  const faults = [
    ...(failed.length > 0 ? [`${failed.length} of ${records.length} cases failed`] : []),
    ...(end === null ? [] : [`after ${records.length} cases: ${end}`]),
  ];
  if (faults.length > 0) throw new PartFailed(faults.join('; '), findings);
  return findings;
}

/** The complete records: the program may have been stopped in the middle of a line. */
async function readRecords(file: string): Promise<ParityRecord[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as ParityRecord);
}
