/** The program of `bench/native`, which suites `native` and `products` run. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { say } from './report.js';

/** Seconds per call. */
export interface Timing {
  readonly median: number;
  /** If it is far below the median, other programs were running. */
  readonly shortest: number;
}

/**
 * Builds the program. Its target is not part of the default build, which `npm run bench` has already
 * configured.
 *
 * @returns its path
 */
export async function buildNativeProgram(): Promise<string> {
  say('building build/bench/native');
  await promisify(execFile)('cmake', ['--build', 'build-native', '--target', 'bench_native'], {
    cwd: fileURLToPath(new URL('../../', import.meta.url)),
  });
  return fileURLToPath(new URL('native', import.meta.url));
}
