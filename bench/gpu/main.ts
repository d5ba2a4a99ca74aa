/** Started by bench/gpu/run.sh: runs all parts, and writes the results after each. */
import { mkdir } from 'node:fs/promises';
import { CommanderError } from 'commander';
import { say } from '../report.js';
import { Deadline } from './deadline.js';
import { parseGpuOptions, type GpuOptions } from './gpuOptions.js';
import { allParts } from './allParts.js';
import { exitCode, runParts } from './parts.js';
import { writeResults } from './results.js';

// Without a handler a signal would end this process and leave the others running.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => process.exit(1));
}

try {
  process.exitCode = await runAll(parseGpuOptions(process.argv.slice(2)));
} catch (error) {
  // Commander has already printed its message.
  if (error instanceof CommanderError) process.exitCode = error.exitCode;
  else {
    say(`failed: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}

async function runAll(options: GpuOptions): Promise<number> {
  const start = performance.now();
  await mkdir(options.output, { recursive: true });
  const results = await runParts(allParts(options), new Deadline(options.limit), async (parts) => {
    const { name, status, seconds, reason } = parts.at(-1)!;
    say(
      `${name}: ${status} after ${seconds.toFixed(1)} s${reason === undefined ? '' : `: ${reason}`}`,
    );
    await writeResults(options.output, {
      rehearsal: options.rehearse,
      seconds: (performance.now() - start) / 1000,
      parts,
    });
  });
  say(`results.json and results.txt are in ${options.output}`);
  return exitCode(results);
}
