/** Suite `serve`: load from a client process on `torchformer serve`, beside `Translator` in process. */
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { runOurs } from '../child.js';
import type { BenchOptions } from '../options.js';
import { attempt, failures, print } from '../report.js';
import { withWorkFolder } from '../workFolder.js';
import { gatherServing, type ServeFigures, type ServeRound } from './serveFigures.js';
import type { DirectResult, PreparedServing, ServedResult, ServeJob } from './serveJob.js';
import { withServer } from './serverProcess.js';
import { printServing } from './serveTables.js';

/** Runs the suite. @returns the results for `--json`; null if a participant failed in every round */
export function benchServe(options: BenchOptions): Promise<unknown> {
  return withWorkFolder(options.work, (folder) => benchIn(folder, options));
}

async function benchIn(folder: string, options: BenchOptions): Promise<unknown> {
  const { model, data, threads, clients, seconds } = options;
  const prepared = await attempt('serve: preparing the model and the sentences', () => {
    const given = model === undefined ? [] : [resolve(model)];
    return runOurs<PreparedServing>('serve/servePrepare.js', [data, folder, ...given]);
  });
  if (prepared === null) return null;
  const { description, sentences, lone } = prepared;
  print('\n## serve\n');
  print(
    `${description}; ${sentences.length} sentences of Multi30k, test 2016, greedy, float32; ` +
      `each measurement takes ${seconds} s or more\n`,
  );
  const job: ServeJob = { ...prepared, threads, clients, seconds };
  const file = join(folder, 'serve.json');
  await writeFile(file, JSON.stringify(job));
  const rounds = await takeTurns(job, file, options.rounds ?? 3);
  if (rounds.length === 0) return null;
  const figures = gatherServing(rounds);
  printServing(figures, clients);
  failures.push(...faultsOf(figures));
  return { description, lone, clients, seconds, figures, rounds: rounds.map(withoutOutputs) };
}

/** Both sides once per round, never at the same time. */
async function takeTurns(job: ServeJob, file: string, count: number): Promise<ServeRound[]> {
  const rounds: ServeRound[] = [];
  for (let round = 1; round <= count; round++) {
    const title = `serve, round ${round} of ${count}`;
    const direct = await attempt(`${title}: translate`, () =>
      runOurs<DirectResult>('serve/serveDirect.js', [file]),
    );
    if (direct === null) break;
    const served = await attempt(`${title}: serve`, () =>
      withServer(job, (address) => runOurs<ServedResult>('serve/serveClient.js', [file, address])),
    );
    if (served === null) break;
    rounds.push({ direct, served });
  }
  return rounds;
}

/** A speed only counts if the translations are the same. */
function faultsOf({ sentences, calls, served, batch }: ServeFigures): string[] {
  return Object.entries({ 'one call': batch, calls, served }).flatMap(([name, { equal }]) =>
    equal === sentences
      ? []
      : [`serve: ${sentences - equal} of ${sentences} outputs differ or are missing: ${name}`],
  );
}

function withoutOutputs({ direct, served }: ServeRound): object {
  return {
    direct: { ...direct, outputs: undefined, load: { ...direct.load, outputs: undefined } },
    served: { ...served, load: { ...served.load, outputs: undefined } },
  };
}
