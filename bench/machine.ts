/** Where the figures come from: every report begins with it. */
import { readFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  /** Of the instruction sets that matter here, those that the processor has; empty if unknown. */
  readonly instructions: readonly string[];
  readonly memoryBytes: number;
  /** Threads that every participant computes with. */
  readonly threads: number;
  readonly node: string;
  readonly torchformer: string;
  /** Processes that wanted a core in the minute before: above 0.3 or so, figures are in doubt. */
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

/** Those that matter here and are there; empty where it cannot be told. */
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
