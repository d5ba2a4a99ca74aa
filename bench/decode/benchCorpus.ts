/** The part of suite `decode` on a trained model: tokens equal to CTranslate2's, BLEU, and speed. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runOurs, runPeer } from '../child.js';
import type { BenchOptions } from '../options.js';
import { attempt, print } from '../report.js';
import { describeModel } from '../sizes.js';
import { table } from '../table.js';
import { bleuLosses, type BleuLoss } from './bleuLosses.js';
import type { PreparedCorpus } from './corpusPrepare.js';
import type { DecodeCase } from './decodeJob.js';
import { describeSearch, searchCases } from './decodeModels.js';
import { gatherFigures, type DecodeFigure } from './decodeFigures.js';
import { participantName, takeDecodeTurns, type DecodeTurn } from './decodeParticipants.js';
import { printFigures } from './decodeTables.js';
import { prepareRun } from './prepareRun.js';

/** Largest number of tokens of a translation. */
const maxLength = 100;

/** The JSON line of bleu.py. */
interface BleuResult {
  readonly scores: Readonly<Record<string, number>>;
  readonly signature: string;
}

/** @param model model or run folder */
export async function benchCorpus(
  model: string,
  options: BenchOptions,
  folder: string,
): Promise<unknown> {
  const prepared = await attempt('decode, trained model: encoding the sources', () =>
    runOurs<PreparedCorpus>('decode/corpusPrepare.js', [model, options.data, folder]),
  );
  if (prepared === null) return null;
  const sentences = prepared.sources.length;
  print('\n## decode, trained model\n');
  print(
    `${describeModel(prepared.model)}; ${sentences} sentences of Multi30k, test 2016, sorted by ` +
      'length, in batches of 32',
  );
  const cases = (['greedy-32', 'beam-32'] as const)
    .filter((search) => options.searches.includes(search))
    .map((search): DecodeCase => ({
      name: search,
      ...searchCases[search],
      sentences,
      maxLength,
    }));
  if (cases.length === 0) return null;
  const job = { ...prepared, threads: options.threads, cases, seconds: 0 };
  const run = await prepareRun('trained', job, options, folder);
  const turns = await takeDecodeTurns(run.job, run.participants, {
    title: 'decode, trained model',
    file: join(folder, 'trained.decode'),
    python: options.python,
    rounds: options.rounds ?? 1,
  });
  const results: Record<string, unknown> = {};
  for (const each of cases) {
    const figures = gatherFigures(turns, each.name);
    if (figures.length === 0) continue;
    print(`\n${describeSearch(each)}\n`);
    printFigures(figures, { oneRow: false, limits: null });
    const bleu = await scoreTexts(model, each, { turns, figures, prepared, options, folder });
    results[each.name] = { figures, bleu };
  }
  return results;
}

interface Scored {
  readonly turns: readonly DecodeTurn[];
  readonly figures: readonly DecodeFigure[];
  readonly prepared: PreparedCorpus;
  readonly options: BenchOptions;
  readonly folder: string;
}

/** Prints the BLEU of every participant. */
async function scoreTexts(
  model: string,
  { name }: DecodeCase,
  { turns, figures, prepared, options, folder }: Scored,
): Promise<readonly BleuLoss[] | null> {
  // sacrebleu is one of the packages of the peers.
  if (options.peers.length === 0) return null;
  const ids = Object.fromEntries(
    turns.flatMap(({ participant, result }) => {
      const found = result.cases[name];
      return found === undefined ? [] : [[participantName(participant), found.ids]];
    }),
  );
  const idsFile = join(folder, `trained.${name}.ids.json`);
  const textsFile = join(folder, `trained.${name}.texts.json`);
  await writeFile(idsFile, JSON.stringify(ids));
  const result = await attempt(`decode, trained model: BLEU of ${name}`, async () => {
    await runOurs('decode/corpusTexts.js', [model, idsFile, prepared.references, textsFile]);
    return runPeer<BleuResult>(options.python, 'bleu.py', [textsFile]);
  });
  if (result === null) return null;
  const losses = bleuLosses(figures, result.scores);
  print(`\nBLEU (${result.signature}), and what a low precision loses\n`);
  print(
    table(
      ['participant', 'BLEU', 'lost'],
      losses.map(({ name, bleu, lost }) => [
        name,
        bleu.toFixed(2),
        lost === null ? '' : lost.toFixed(2).replace('-0.00', '0.00'),
      ]),
    ),
  );
  return losses;
}
