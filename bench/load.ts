/** Suite `load`: a process that imports the package, computes 1 + 1 and exits. */
import { ourProgram, peerProgram, runChild } from './child.js';
import type { BenchOptions } from './options.js';
import { attempt, print } from './report.js';
import { median } from './statistics.js';
import { duration, ratio, table } from './table.js';

/** Runs the suite. @returns the results for `--json` */
export async function benchLoad(options: BenchOptions): Promise<unknown> {
  const rounds = options.rounds ?? 10;
  const participants: [name: string, command: string, program: string][] = [
    ['torchformer', process.execPath, ourProgram('loadOurs.js')],
    ['Node.js alone', process.execPath, ourProgram('loadNothing.js')],
  ];
  if (options.peers.length > 0) {
    participants.push(['Python, import torch', options.python, peerProgram('load.py')]);
  }
  const seconds = new Map(participants.map(([name]) => [name, [] as number[]]));
  // The first round loads the files into the page cache and is not counted.
  for (let round = 0; round <= rounds; round++) {
    for (const [name, command, program] of participants) {
      const start = performance.now();
      const sum = await attempt(`load, round ${round} of ${rounds}: ${name}`, () =>
        runChild<number>(command, [program]),
      );
      if (sum !== null && round > 0) seconds.get(name)?.push((performance.now() - start) / 1000);
    }
  }
  const medians = [...seconds]
    .filter(([, times]) => times.length > 0)
    .map(([name, times]) => ({ name, seconds: median(times) }));
  const python = medians.find(({ name }) => name.startsWith('Python'));
  print('\n## load\n');
  print(`A whole process that loads, computes 1 + 1 and exits; medians of ${rounds} in turn`);
  print();
  const rows = medians.map(({ name, seconds: time }) => [
    name,
    duration(time),
    python === undefined ? '-' : ratio(time / python.seconds),
  ]);
  print(table(['process', 'time', "of Python's"], rows));
  return medians;
}
