/** The wheels with NVIDIA's libraries that the CUDA build of libtorch needs. */
import { requirementsOf } from './archive.js';
import { download } from './download.js';
import { parseRequirement, type Requirement } from './requirement.js';
import { findWheel } from './wheelIndex.js';

/**
 * The requirements to download for this variant. NVIDIA's libraries are in separate wheels. Even
 * the libtorch_cpu.so of the CUDA wheel needs two of them (runtime and profiler, 15 MB), which work
 * without a GPU. The public index has only this build for x64 Linux, so setup for the CPU uses it.
 */
export function nvidiaRequirements(
  requirements: readonly string[],
  variant: 'cpu' | 'cuda',
): readonly string[] {
  if (variant === 'cuda')
    return requirements.filter((line) => /^(nvidia-|cuda-toolkit)/.test(line));
  return requirements
    .filter((line) => line.startsWith('cuda-toolkit'))
    .map((line) => line.replace(/\[[^\]]*\]/, '[cudart,cupti]'));
}

/**
 * Downloads the wheels of the requirements and of their requirements in turn.
 *
 * @returns the paths of the wheels that contain libraries, one by one
 */
export async function* nvidiaWheelsOfIndex(
  index: string,
  requirements: readonly string[],
  options: {
    readonly folder: string;
    /** Receives the paths of all downloads. */
    readonly used: string[];
    readonly log: (line: string) => void;
  },
): AsyncGenerator<string> {
  const waiting = requirements.flatMap((line) => parseRequirement(line) ?? []);
  const done = new Set<string>();
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const { name, extras } = next;
    if (done.has(name)) continue;
    done.add(name);
    const { url, sha256, filename } = await findWheel(index, strictest(next, waiting));
    const wheel = await download(url, { folder: options.folder, sha256, log: options.log });
    options.used.push(wheel);
    for (const line of await requirementsOf(wheel)) {
      const needed = parseRequirement(line, extras);
      if (needed !== null) waiting.push(needed);
    }
    if (filename.startsWith('nvidia_')) yield wheel;
  }
}

/** Several requirements may name the same wheel, which must satisfy all of them. */
function strictest(one: Requirement, others: readonly Requirement[]): Requirement {
  const same = others.filter(({ name }) => name === one.name);
  return { ...one, clauses: [one, ...same].flatMap(({ clauses }) => clauses) };
}
