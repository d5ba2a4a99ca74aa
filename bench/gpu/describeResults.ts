/** The results of a run as text. */
import { duration, gigabytes, ratio, table } from '../table.js';
import { describeModel } from '../sizes.js';
import type { ParityFindings, ParityRecord } from './parityOfOps.js';
import type { PartResult } from './parts.js';
import type { Tools } from './tools.js';
import type { TrainFindings } from './trainFindings.js';

/** The results of a run. */
export interface Results {
  readonly rehearsal: boolean;
  /** So far. */
  readonly seconds: number;
  readonly parts: readonly PartResult[];
}

/** Markdown: the status of every part, then its results. */
export function describeResults({ rehearsal, seconds, parts }: Results): string {
  const head = rehearsal
    ? 'Rehearsal on the CPU with tiny sizes: no figure here says anything about a GPU.'
    : 'torchformer on a GPU';
  const ended = parts.map(({ name, status, seconds: taken, reason }) => [
    name,
    status === 'skipped' ? `skipped: ${reason}` : status,
    `${taken.toFixed(1)} s`,
  ]);
  const blocks = [
    `${head}\n${seconds.toFixed(0)} s in all`,
    table(['part', 'status', 'time'], ended),
    ...parts.filter(({ status }) => status === 'failed').map(describeFailure),
    ...parts.filter(({ found }) => found !== undefined).map(describeFound),
  ];
  return blocks.filter(Boolean).join('\n\n');
}

function describeFailure({ name, reason }: PartResult): string {
  return `${name} failed: ${reason}`;
}

function describeFound({ name, found }: PartResult): string {
  if (name === 'tools') return describeTools(found as Tools);
  if (name === 'parity of ops') return describeParity(found as ParityFindings);
  if (name.startsWith('train ')) return describeTraining(found as TrainFindings);
  if (name === 'times of ops') return describeTimes(found as OpTimes);
  return `## ${name}\n\n${JSON.stringify(found)}`;
}

function describeTools({ torch, cuda, python, gpu, cores }: Tools): string {
  const device =
    gpu === null
      ? 'no GPU'
      : `${gpu.name} (sm_${gpu.capability.replace('.', '')}, ${gigabytes(gpu.memoryBytes)}, driver ` +
        `${gpu.driver ?? 'unknown'})`;
  return `${device}, ${cores} cores; PyTorch ${torch} with CUDA ${cuda ?? 'none'}, Python ${python}`;
}

/** The largest errors of each op and dtype, and each failed case. */
function describeParity({ cases, failed, records }: ParityFindings): string {
  const groups = [...new Set(records.map(({ op, dtype }) => `${op} ${dtype}`))];
  const rows = groups.map((group) => {
    const own = records.filter(({ op, dtype }) => `${op} ${dtype}` === group);
    return [
      group,
      String(own.length),
      String(own.filter(({ passed }) => !passed).length),
      worst(own, ({ error }) => error),
      worst(own, ({ gradientError }) => gradientError),
      worst(own, ({ cpuError }) => cpuError),
    ];
  });
  const faults = records
    .filter(({ passed }) => !passed)
    .map(({ op, dtype, options, fault, error, gradientError }) =>
      [
        `- ${op} ${dtype}`,
        options,
        fault ?? `error ${error}, gradient error ${gradientError}`,
      ].join(': '),
    );
  return [
    `## parity of ops\n\n${cases} cases, ${failed} failed; largest errors:\n`,
    table(['op', 'cases', 'failed', 'values', 'gradients', 'values on the CPU'], rows),
    ...(faults.length > 0 ? ['', ...faults] : []),
  ].join('\n');
}

function worst(
  records: readonly ParityRecord[],
  pick: (record: ParityRecord) => number | null | undefined,
): string {
  const values = records.flatMap((record) => pick(record) ?? []);
  return values.length === 0 ? '' : Math.max(...values).toExponential(1);
}

function describeTraining(found: TrainFindings): string {
  const { size, about, model, parameters, timing, rounds, compileSeconds, equality } = found;
  const ours = timing.filter(({ kind }) => kind === 'ours');
  const rows = timing.map((each) => [
    each.name,
    duration(each.step),
    duration(each.best),
    each.tokensPerSecond.toFixed(0),
    ...ours.map((own) => (own === each ? '' : ratio(each.step / own.step))),
    each.peakDevice === null ? 'unknown' : gigabytes(each.peakDevice),
  ]);
  const against = ours.map(({ name }) => `${name} is`);
  const differences = Object.entries(equality.differences).map(([name, difference]) => [
    name,
    difference.toExponential(1),
  ]);
  return [
    `## train ${size}\n`,
    `${describeModel(model)}, ${(parameters / 1e6).toFixed(1)} M parameters; ${about}; medians of ` +
      `${rounds} rounds in turn` +
      (compileSeconds === null ? '' : `; torch.compile took ${compileSeconds.toFixed(0)} s`),
    '',
    table(['participant', 'step', 'shortest', 'target tokens/s', ...against, 'GPU memory'], rows),
    '',
    'First ten losses with dropout 0, largest relative difference from those of seed:\n',
    table(['participant', 'difference'], differences),
  ].join('\n');
}

/** What op_times.py prints. */
export interface OpTimes {
  readonly times: readonly {
    readonly op: string;
    readonly dtype: string;
    readonly input: string;
    /** Seconds, forward and backward. */
    readonly ours: number | null;
    readonly aten: number | null;
    readonly fault?: string;
  }[];
}

function describeTimes({ times }: OpTimes): string {
  const rows = times.map(({ op, dtype, input, ours, aten, fault }) => [
    `${op} ${dtype}, ${input}`,
    ours === null ? 'failed' : duration(ours),
    aten === null ? 'failed' : duration(aten),
    ours === null || aten === null ? (fault ?? '') : ratio(aten / ours),
  ]);
  return `## times of ops\n\n${table(['op, forward and backward', 'ours', 'ATen', 'ours is'], rows)}`;
}
