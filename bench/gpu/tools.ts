/** Part `tools`: what the machine has to have. */
import { accessSync, constants } from 'node:fs';
import { availableParallelism } from 'node:os';
import { delimiter, join } from 'node:path';
import { runChild } from '../child.js';

/** What PyTorch tells of itself and of the GPU: the line of machine.py. */
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

/** What brings each program that may be missing. */
const remedies = {
  cmake: 'install CMake 3.22 or newer (pip has it as cmake)',
  ninja: 'install Ninja (pip has it as ninja)',
  'c++': 'install a compiler for C++20, such as g++ 12, or name one in CXX',
  nvcc: 'install the CUDA toolkit, or put the folder with nvcc in the PATH or its toolkit in CUDA_HOME',
} as const;

/** @throws Error that names everything that is missing, each with the way out */
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
    .map((name) => `there is no ${name}: ${remedies[name]}`);
  const facts = await runChild<TorchFacts>(python, [join(gpu, 'machine.py')], { seconds }).catch(
    (error: unknown) => {
      faults.push(
        `${python} cannot import torch (${(error as Error).message}): install PyTorch with CUDA, or name ` +
          'another Python in TORCHFORMER_BENCH_PYTHON',
      );
      return null;
    },
  );
  if (facts !== null && facts.gpu === null && !rehearse) {
    faults.push(
      `PyTorch ${facts.torch} finds no GPU: install NVIDIA's driver and a PyTorch with CUDA, or rehearse ` +
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

/** Its path; null when neither the PATH nor these folders have it. */
export function findProgram(name: string, folders: readonly string[] = []): string | null {
  const places = [...(process.env['PATH'] ?? '').split(delimiter), ...folders].filter(Boolean);
  for (const place of places) {
    const file = join(place, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // The next place may have it.
    }
  }
  return null;
}
