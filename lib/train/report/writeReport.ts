/** Writes `report.html` for the folders of some runs. */
import { basename, join, resolve, sep } from 'node:path';
import { writeFileAtomically } from '../../io/atomicFile.js';
import { checkOptions, checkPath, checkStrings } from '../../runtime/arguments.js';
import { limitsFor } from './runCollector.js';
import { readRun, readSettings } from './readRun.js';
import { reportPage } from './reportPage.js';
import type { ReportData, RunReport } from './reportData.js';

/** Options of {@link writeReport}. */
export interface WriteReportOptions {
  /** The file to write. Default: `report.html` in the folder of the only run, else in the current one. */
  out?: string;
}

/**
 * Writes a page that shows the curves, samples and settings of one or more runs, also of runs that are
 * not over or were killed. The page is one file and needs no network.
 *
 * @param runs the folders of the runs
 * @returns the path of the page
 * @throws TypeError, RangeError if an argument is invalid
 * @throws TorchError ERR_DATA if a folder has no run, or naming the line of a log that cannot be read;
 *   ERR_CHECKPOINT if the page cannot be written
 */
export async function writeReport(
  runs: readonly string[],
  options: WriteReportOptions = {},
): Promise<string> {
  checkStrings('writeReport', 'runs', runs);
  checkOptions('writeReport', options, ['out']);
  const [first] = runs;
  if (first === undefined) throw new RangeError('writeReport: runs must have a folder, got none');
  const { out = runs.length === 1 ? join(first, 'report.html') : 'report.html' } = options;
  checkPath('writeReport', 'out', out);
  const names = runNames(runs);
  const limits = limitsFor(runs.length);
  const reports: RunReport[] = [];
  for (const [index, folder] of runs.entries()) {
    const run = await readRun(folder, limits);
    reports.push(run.report(names[index] as string, await readSettings(folder)));
  }
  await writePage(out, { made: new Date().toISOString(), runs: reports });
  return out;
}

/** @throws TorchError ERR_CHECKPOINT */
export async function writePage(path: string, data: ReportData): Promise<void> {
  const page = Buffer.from(await reportPage(data));
  await writeFileAtomically(path, (sink) => sink(page));
}

/** The last parts of the folders' paths, as many as make them different. */
export function runNames(folders: readonly string[]): string[] {
  const paths = folders.map((folder) => resolve(folder).split(sep));
  const most = Math.max(...paths.map(({ length }) => length));
  for (let count = 1; count <= most; count++) {
    const names = paths.map((path) => path.slice(-count).join('/'));
    if (new Set(names).size === names.length) return names;
  }
  // The same folder twice.
  return folders.map((folder, index) => `${basename(resolve(folder))} (${index + 1})`);
}
