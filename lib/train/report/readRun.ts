/** Reads what the report shows of a run from the files in its folder. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { TorchError } from '../../runtime/errors.js';
import type { History } from '../run/history.js';
import { logRecords } from './logReader.js';
import { checkRecord, type LogRecord } from './logRecord.js';
import { readFault, readLog, type RunLog } from './readLog.js';
import { RunCollector, type CollectorLimits } from './runCollector.js';

/**
 * Reads `log.jsonl`, else `history.json`, which older versions wrote alone.
 *
 * @param upTo leaves out what comes after this step
 * @throws TorchError ERR_DATA if the folder has neither, or naming the line that cannot be read
 */
export async function readRun(
  folder: string,
  limits: CollectorLimits,
  upTo = Infinity,
): Promise<RunCollector> {
  const log = join(folder, 'log.jsonl');
  const history = join(folder, 'history.json');
  try {
    if (await isFile(log)) return await readLogOf(log, limits, upTo);
    if (await isFile(history)) return await readHistoryOf(history, limits, upTo);
  } catch (error) {
    throw readFault(folder, error);
  }
  throw new TorchError(
    'ERR_DATA',
    `${folder}: there is no run in this folder, because it has neither log.jsonl nor history.json; ` +
      'pass the folder in which a training writes',
  );
}

/** The settings file of a run; null if it has none. */
export async function readSettings(folder: string): Promise<string | null> {
  try {
    return await readFile(join(folder, 'config.yaml'), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw readFault(folder, error);
  }
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return false;
    throw error;
  }
}

async function readLogOf(
  path: string,
  limits: CollectorLimits,
  upTo: number,
): Promise<RunCollector> {
  const run = new RunCollector(limits);
  for await (const records of logRecords(path)) {
    for (const record of records) {
      // A resumed run has removed the steps that it repeats, unless something else wrote the log.
      if (record.event === 'start' && record.step < run.step) {
        return collect(recordsOf(await readLog(path)), limits, upTo);
      }
      if (record.step <= upTo) run.add(record);
    }
  }
  return run;
}

async function readHistoryOf(
  path: string,
  limits: CollectorLimits,
  upTo: number,
): Promise<RunCollector> {
  const text = await readFile(path, 'utf8');
  try {
    const history = JSON.parse(text) as Partial<History>;
    return collect(recordsOf(history), limits, upTo);
  } catch (error) {
    throw new TorchError(
      'ERR_DATA',
      `${path}: this is not the history of a run: ${(error as Error).message}`,
      { cause: error },
    );
  }
}

function collect(
  records: readonly LogRecord[],
  limits: CollectorLimits,
  upTo: number,
): RunCollector {
  const run = new RunCollector(limits);
  for (const record of records) if (record.step <= upTo) run.add(record);
  return run;
}

/** In an order in which they may have come. Those of older versions lack some lists and fields. */
function recordsOf(log: Partial<History> & Partial<RunLog>): LogRecord[] {
  const { starts = [], steps = [], validations = [], epochs = [], messages = [], end } = log;
  const of = (event: LogRecord['event'], records: readonly object[]) =>
    records.map((record) => {
      const known = { event, ...(event === 'step' ? oldStep : {}), ...record };
      return checkRecord(known) as LogRecord;
    });
  return [
    ...of('start', starts),
    ...of('step', steps),
    ...of('validation', validations),
    ...of('epoch', epochs),
    ...of('message', messages),
    ...(end === null || end === undefined ? [] : of('end', [end])),
  ];
}

/** What the steps of older versions lack. */
const oldStep = { gradientNorm: NaN, seconds: NaN };
