/** `torchformer doctor` */
import type { Command } from 'commander';
import { examineRuntime } from '../runtime/doctor/doctor.js';
import type { RuntimeReport } from '../runtime/doctor/runtimeReport.js';
import { integer } from './flagValues.js';

interface DoctorFlags {
  json?: true;
  timeout: number;
}

export function registerDoctor(program: Command): void {
  program
    .command('doctor')
    .description(
      'Show which addon and which libtorch are used, how they were found, and what is wrong; ' +
        'the last line says what to do.',
    )
    .option('--json', 'print one JSON object')
    .option(
      '--timeout <seconds>',
      'time after which loading or computing counts as stuck',
      integer(1, 86_400),
      120,
    )
    .action(async ({ json, timeout }: DoctorFlags) => {
      const report = await examineRuntime({ timeout });
      process.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : describe(report));
      if (!report.healthy) process.exitCode = 1;
    });
}

function describe(report: RuntimeReport): string {
  const { node, platform, addon, processor, cuda } = report;
  const libc = platform.libc === null ? '' : `, ${platform.libc} ${platform.libcVersion ?? ''}`;
  const need = platform.libcNeeded === null ? '' : ` (needed: ${platform.libcNeeded})`;
  const lines = [
    row('torchformer', report.torchformer),
    row('Node.js', `${node.version}, Node-API ${node.napi}, ${node.path}`),
    row('system', `${platform.os} ${platform.arch}${libc.trimEnd()}${need}`),
    row(
      'processor',
      `${processor.cores} cores; ${processor.features.join(' ') || 'features unknown'}`,
    ),
    row('addon', addon === null ? 'not found' : `${addon.path}, ${addon.place}`),
    ...describeLibtorch(report),
    row('cache', report.cache ?? 'none: no home folder'),
  ];
  if (processor.capability !== null) {
    lines.push(
      row('kernels', `${processor.capability}, ${processor.threads} threads`),
      row(
        'products',
        `float32 by ${processor.float32Products}; bfloat16 as ${processor.bfloat16Products}`,
      ),
      row('int8', `${processor.int8Products}`),
      row('CUDA', `${cuda.opened ? 'opened' : 'not opened'}: ${cuda.reason}`),
      ...(cuda.kernelsProblem === null
        ? []
        : [row('CUDA kernels', `not opened: ${cuda.kernelsProblem}`)]),
    );
  }
  for (const { device, problem } of report.devices) {
    lines.push(row(device, problem === null ? 'a matrix product is correct' : problem));
  }
  if (report.decoding.length > 0) lines.push(row('decoding', describeDecoding(report)));
  const problems = report.problems.map((problem) => `Problem: ${problem}`);
  return `${[...lines, '', ...problems, report.advice].join('\n')}\n`;
}

function describeLibtorch({ libtorch, searched, addon }: RuntimeReport): string[] {
  const needed = addon?.builtFor ?? null;
  const rows = [
    row(
      'libtorch',
      libtorch === null
        ? 'not found'
        : `${libtorch.version ?? 'unknown version'} in ${libtorch.path}, from ${libtorch.place}` +
            (needed === null ? '' : ` (needed: ${needed})`),
    ),
  ];
  if (libtorch !== null && libtorch.loaded !== null) rows.push(row('loaded', libtorch.loaded));
  const passedOver = searched.filter(({ problem }) => problem !== null);
  passedOver.forEach(({ place, path, problem }, index) => {
    const name = index === 0 ? 'looked in' : '';
    rows.push(row(name, `${place}${path === null ? '' : ` ${path}`}: ${problem}`));
  });
  return rows;
}

function describeDecoding({ decoding }: RuntimeReport): string {
  const steady = decoding.filter(({ works }) => works).map(({ precision }) => precision);
  const others = decoding.filter(({ works }) => !works).map(({ precision }) => precision);
  return [
    ...(steady.length > 0 ? [`${steady.join(' and ')} the same alone and in a batch`] : []),
    ...(others.length > 0 ? [`not ${others.join(' and ')}`] : []),
  ].join('; ');
}

function row(name: string, value: string): string {
  return `${name.padEnd(12)} ${value}`;
}
