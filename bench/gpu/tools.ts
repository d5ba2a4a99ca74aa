/** Part `tools`: checks what the machine must provide. */
import { accessSync, constants } from 'node:fs';
import { availableParallelism } from 'node:os';
import { delimiter, join } from 'node:path';
import { runChild } from '../child.js';

/** What PyTorch reports about itself and the GPU: the line printed by machine.py. */
export interface TorchFacts {
  readonly python: string;
  readonly torch: string;
  /** Null for a PyTorch without CUDA. */
  readonly cuda: string | null;
  readonly folder: string;
  readonly gpu: {
    readonly name: string;
    readonly capability: string;
    readonly memoryBytes: number;
    readonly driver: string | null;
  } | null;
}

export interface Tools extends TorchFacts {
  readonly cores: number;
  readonly cmake: string;
  readonly ninja: string;
  readonly compiler: string;
  /** Null only in rehearsals. */
  readonly nvcc: string | null;
}

/** How to install each program that may be missing. */
const remedies = {
  cmake: 'install CMake 3.22 or newer (pip has it as cmake)',
  ninja: 'install Ninja (pip has it as ninja)',
  'c++': 'install a C++20 compiler, such as g++ 12, or set CXX to one',
  nvcc: 'install the CUDA toolkit, add the folder with nvcc to the PATH, or set CUDA_HOME to the toolkit',
} as const;

/** @throws Error that lists everything that is missing, each with the fix */
export async function findTools(
  { python, gpu, rehearse }: { python: string; gpu: string; rehearse: boolean },
  seconds: number,
): Promise<Tools> {
  const cuda = process.env['CUDA_HOME'] ?? '/usr/local/cuda';
  const found = {
    cmake: findProgram('cmake'),
    ninja: findProgram('ninja'),
    'c++': process.env['CXX'] ?? findProgram('c++'),
    nvcc: findProgram('nvcc', [join(cuda, 'bin')]),
  };
  const faults = (Object.keys(found) as (keyof typeof found)[])
    .filter((name) => found[name] === null && !(name === 'nvcc' && rehearse))
    .map((name) => `${name} was not found: ${remedies[name]}`);
  const facts = await runChild<TorchFacts>(python, [join(gpu, 'machine.py')], { seconds }).catch(
    (error: unknown) => {
      faults.push(
        `${python} cannot import torch (${(error as Error).message}): install PyTorch with CUDA, or set ` +
          'TORCHFORMER_BENCH_PYTHON to another Python',
      );
      return null;
    },
  );
  if (facts !== null && facts.gpu === null && !rehearse) {
    faults.push(
      `PyTorch ${facts.torch} finds no GPU: install the NVIDIA driver and PyTorch with CUDA, or rehearse ` +
        'on the CPU with --rehearse',
    );
  }
  if (facts === null || faults.length > 0) throw new Error(faults.join('; '));
  return {
    ...facts,
    cores: availableParallelism(),
    cmake: found.cmake!,
    ninja: found.ninja!,
    compiler: found['c++']!,
    nvcc: found.nvcc,
  };
}

/** Its path; null if it is neither in the PATH nor in these folders. */
export function findProgram(name: string, folders: readonly string[] = []): string | null {
  const places = [...(process.env['PATH'] ?? '').split(delimiter), ...folders].filter(Boolean);
  for (const place of places) {
    const file = join(place, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // It may be in the next folder.
    }
  }
  return null;
}
