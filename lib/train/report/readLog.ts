/** Reads `log.jsonl` back. */
import { checkPath } from '../../runtime/arguments.js';
import { TorchError } from '../../runtime/errors.js';
import type { CheckpointEvent } from '../run/events.js';
import type { History } from '../run/history.js';
import { logRecords } from './logReader.js';
import type { EndRecord, LogRecord, MessageRecord, StartRecord } from './logRecord.js';

/** What a log contains. Steps that a killed run took after its last checkpoint are left out if it was resumed. */
export interface RunLog extends History {
  /** The beginning of the run, and each time it was resumed. */
  readonly starts: StartRecord[];
  /** The models that were saved. */
  readonly checkpoints: CheckpointEvent[];
  /** Warnings and other texts. */
  readonly messages: MessageRecord[];
  /** How the run ended; null if it is running or was killed. */
  readonly end: EndRecord | null;
}

/**
 * Reads a log, also of a run that is not over. A last line that is torn, because the writer was killed,
 * is left out. `validationBatches` is empty: the log has no records of single batches.
 *
 * @param path the file
 * @throws TypeError if `path` is none
 * @throws TorchError ERR_DATA if there is no such file, or naming the line that cannot be read
 */
export async function readLog(path: string): Promise<RunLog> {
  checkPath('readLog', 'path', path);
  const log = newLog();
  try {
    for await (const records of logRecords(path)) for (const record of records) add(log, record);
  } catch (error) {
    throw readFault(path, error);
  }
  return log;
}

/** The error of a file that cannot be read. */
export function readFault(path: string, error: unknown): Error {
  if (error instanceof TorchError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  if (typeof code !== 'string') return error as Error;
  return new TorchError('ERR_DATA', `cannot read ${path}: ${message}`, { cause: error });
}

type Growing = { -readonly [Name in keyof RunLog]: RunLog[Name] };

function newLog(): Growing {
  return {
    steps: [],
    validationBatches: [],
    validations: [],
    epochs: [],
    starts: [],
    checkpoints: [],
    messages: [],
    end: null,
  };
}

function add(log: Growing, record: LogRecord): void {
  const { event, ...rest } = record;
  switch (event) {
    case 'start':
      // A resumed run has removed them from the file, unless another program wrote it.
      for (const name of ['steps', 'validations', 'epochs'] as const) {
        dropAfter(log[name], record.step);
      }
      log.end = null;
      log.starts.push(rest as StartRecord);
      break;
    case 'step':
      log.steps.push(rest as RunLog['steps'][number]);
      break;
    case 'validation':
      replaceLast(log.validations, rest as RunLog['validations'][number]);
      break;
    case 'epoch':
      replaceLast(log.epochs, rest as RunLog['epochs'][number]);
      break;
    case 'checkpoint':
      log.checkpoints.push(rest as CheckpointEvent);
      break;
    case 'message':
      log.messages.push(rest as MessageRecord);
      break;
    case 'end':
      log.end = rest as EndRecord;
  }
}

function dropAfter(records: { readonly step: number }[], step: number): void {
  while ((records.at(-1)?.step ?? 0) > step) records.pop();
}

/** A run that was killed after its checkpoint and before the end of the validation repeats it. */
function replaceLast<T extends { readonly step: number; readonly epoch: number }>(
  records: T[],
  record: T,
): void {
  const last = records.at(-1);
  if (last?.step === record.step && last.epoch === record.epoch) records.pop();
  records.push(record);
}
