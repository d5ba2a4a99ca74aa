/** Suite `modules`: parts of the model, forward and backward, compared with the seed's classes. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runOurs, runPeer } from './child.js';
import { moduleNames, moduleShape } from './moduleNames.js';
import type { BenchOptions } from './options.js';
import { attempt, print } from './report.js';
import { median } from './statistics.js';
import { duration, ratio, table } from './table.js';
import { withWorkFolder } from './workFolder.js';

/** The JSON line of a participant: the timed iterations by case. */
export interface ModulesResult {
  readonly seconds: Readonly<Record<string, readonly number[]>>;
  /** Peers: largest difference of output and gradients from ours, relative to the largest value. */
  readonly difference?: Readonly<Record<string, number>>;
  /** Peers: why a case could not run. */
  readonly errors?: Readonly<Record<string, string>>;
}

const iterations = 20;
const warmup = 5;

/** Runs the suite. @returns the results for `--json` */
export async function benchModules(options: BenchOptions): Promise<unknown> {
  return withWorkFolder(options.work, (folder) => run(options, folder));
}

async function run(options: BenchOptions, folder: string): Promise<unknown> {
  const file = join(folder, 'modules.safetensors');
  const job = join(folder, 'modules.job.json');
  const { threads } = options;
  await writeFile(job, JSON.stringify({ file, threads, iterations, warmup, ...moduleShape }));
  const rounds = options.rounds ?? 3;
  const peers = options.peers.length === 0 ? [] : ['eager', 'compiled'];
  const turns: Record<string, ModulesResult[]> = { ours: [] };
  for (const peer of peers) turns[peer] = [];
  for (let round = 1; round <= rounds; round++) {
    const title = (name: string) => `modules, round ${round} of ${rounds}: ${name}`;
    const settings = [file, round, threads, iterations, warmup].map(String);
    const ours = await attempt(title('ours'), () =>
      runOurs<ModulesResult>('modulesOurs.js', settings),
    );
    if (ours === null) return null;
    turns['ours']?.push(ours);
    for (const peer of peers) {
      const result = await attempt(title(peer), () =>
        runPeer<ModulesResult>(options.python, 'modules.py', ['--job', job, '--variant', peer]),
      );
      if (result !== null) turns[peer]?.push(result);
    }
  }
  const figures = Object.entries(moduleNames).map(([name, title]) => ({
    name,
    title,
    ours: summary(turns['ours'], name),
    eager: summary(turns['eager'], name),
    compiled: summary(turns['compiled'], name),
  }));
  show(figures, rounds);
  return figures;
}

interface Summary {
  readonly seconds: number | null;
  readonly difference: number | null;
  readonly error: string | null;
}

function summary(turns: readonly ModulesResult[] | undefined, name: string): Summary {
  const all = turns?.flatMap(({ seconds }) => seconds[name] ?? []) ?? [];
  return {
    seconds: all.length === 0 ? null : median(all),
    difference: turns?.[0]?.difference?.[name] ?? null,
    error: turns?.[0]?.errors?.[name] ?? null,
  };
}

interface Figure {
  readonly title: string;
  readonly ours: Summary;
  readonly eager: Summary;
  readonly compiled: Summary;
}

function show(figures: readonly Figure[], rounds: number): void {
  const { B, S, dModel, dFf, h, vocabSize } = moduleShape;
  print('\n## modules\n');
  print(
    `B ${B}, S ${S}, d ${dModel}, ff ${dFf}, h ${h}, V ${vocabSize}; forward and backward, dropout ` +
      `on; medians of ${iterations} after ${warmup}, ${rounds} rounds in turn; differences: outputs ` +
      'and gradients with dropout off, relative to the largest value',
  );
  print();
  const time = ({ seconds }: Summary): string => (seconds === null ? '-' : duration(seconds));
  const against = (own: Summary, peer: Summary): string =>
    own.seconds === null || peer.seconds === null ? '-' : ratio(peer.seconds / own.seconds);
  const rows = figures.map(({ title, ours, eager, compiled }) => [
    title,
    time(ours),
    time(eager),
    against(ours, eager),
    time(compiled),
    against(ours, compiled),
    [eager, compiled].map(({ difference }) => difference?.toExponential(0) ?? '-').join(', '),
  ]);
  const head = ['module', 'ours', 'seed eager', 'ours is', 'torch.compile', 'ours is'];
  print(table([...head, 'differences'], rows));
  for (const { title, eager, compiled } of figures) {
    for (const { error } of [eager, compiled]) if (error !== null) print(`\n${title}: ${error}`);
  }
}
