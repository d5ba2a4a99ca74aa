/** The wheels with NVIDIA's libraries that the CUDA build of libtorch needs beside it. */
import { requirementsOf } from './archive.js';
import { download } from './download.js';
import { parseRequirement, type Requirement } from './requirement.js';
import { findWheel } from './wheelIndex.js';

/**
 * The CUDA wheel leaves NVIDIA's libraries to wheels of their own. Even its libtorch_cpu.so needs
 * two of them (runtime and profiler, 15 MB); they work without a GPU. The public index has no other
 * build for x64 Linux, so this is what set-up for the CPU gets there.
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
 * Downloads what the requirements and theirs in turn ask for.
 *
 * @returns the paths of the wheels that hold libraries, one after the other
 */
export async function* nvidiaWheelsOfIndex(
  index: string,
  requirements: readonly string[],
  options: {
    readonly folder: string;
    /** Gets all that was downloaded. */
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

/** Several may ask for the same wheel, and all of them must be satisfied. */
function strictest(one: Requirement, others: readonly Requirement[]): Requirement {
  const same = others.filter(({ name }) => name === one.name);
  return { ...one, clauses: [one, ...same].flatMap(({ clauses }) => clauses) };
}
