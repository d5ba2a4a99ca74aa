/** The machine that was measured, described at the start of every report. */
import { readFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  /** The relevant instruction sets that the processor supports; empty if unknown. */
  readonly instructions: readonly string[];
  readonly memoryBytes: number;
  /** Threads that every participant uses. */
  readonly threads: number;
  readonly node: string;
  readonly torchformer: string;
  /** Load average of the minute before the run: above about 0.3, results are doubtful. */
  readonly loadBefore: number;
}

export function examineMachine(threads: number): Machine {
  const packageFile = new URL('../../package.json', import.meta.url);
  const { version } = JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string };
  return {
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    instructions: instructionSets(),
    memoryBytes: totalmem(),
    threads,
    node: process.version,
    torchformer: version,
    loadBefore: loadavg()[0] ?? 0,
  };
}

export function describeMachine(machine: Machine): string {
  const { processor, cores, instructions, memoryBytes, threads, node, torchformer } = machine;
  const lines = [
    `processor: ${processor}, ${cores} cores, ${instructions.join(' ') || 'instructions unknown'}`,
    `memory: ${(memoryBytes / 1e9).toFixed(0)} GB; threads: ${threads}; load before: ` +
      machine.loadBefore.toFixed(2),
    `torchformer ${torchformer}, Node.js ${node}`,
  ];
  return lines.join('\n');
}

/** The relevant instruction sets that are supported; empty if unknown. */
export function instructionSets(): string[] {
  const wanted = ['avx2', 'avx512f', 'avx512_bf16', 'amx_bf16'];
  try {
    const flags = /^flags\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1] ?? '';
    const found = new Set(flags.trim().split(/\s+/));
    return wanted.filter((name) => found.has(name));
  } catch {
    return [];
  }
}
