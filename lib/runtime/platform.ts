/**
 * All that depends on the operating system and the processor: which packages hold the binaries, and
 * what the libraries are called. Nothing else in the runtime tells one system from another by name.
 */
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { processLibc } from './libc.js';
import { moduleFile } from './moduleFile.js';

/** The names of libtorch's libraries on one operating system. */
export interface LibraryNames {
  readonly c10: string;
  readonly torchCpu: string;
  readonly torchCuda: string;
  /** The library of the NVIDIA driver; null where there is none. */
  readonly cudaDriver: string | null;
}

/** One kind of machine. */
export interface Platform {
  /** As npm packages with binaries are named: `linux-x64`. */
  readonly name: string;
  /** For people: `Linux on x86-64`. */
  readonly title: string;
  /** What `process.platform`, `process.arch` and npm call it. */
  readonly os: NodeJS.Platform;
  readonly cpu: NodeJS.Architecture;
  /** The C library that its binaries need; null where there is one only. */
  readonly libc: 'glibc' | null;
  /** npm package with the addon, built ahead. */
  readonly addonPackage: string;
  /** npm package with the CPU libraries of libtorch. */
  readonly libtorchPackage: string;
  readonly libraries: LibraryNames;
  /** Whether its packages are made and tested. The others are prepared only. */
  readonly released: boolean;
}

const linuxLibraries: LibraryNames = {
  c10: 'libc10.so',
  torchCpu: 'libtorch_cpu.so',
  torchCuda: 'libtorch_cuda.so',
  cudaDriver: 'libcuda.so.1',
};
const macLibraries: LibraryNames = {
  c10: 'libc10.dylib',
  torchCpu: 'libtorch_cpu.dylib',
  torchCuda: 'libtorch_cuda.dylib',
  cudaDriver: null,
};
const windowsLibraries: LibraryNames = {
  c10: 'c10.dll',
  torchCpu: 'torch_cpu.dll',
  torchCuda: 'torch_cuda.dll',
  cudaDriver: 'nvcuda.dll',
};

function platform(
  os: NodeJS.Platform,
  cpu: NodeJS.Architecture,
  rest: Pick<Platform, 'title' | 'libc' | 'libraries' | 'released'>,
): Platform {
  const name = `${os}-${cpu}`;
  return {
    name,
    os,
    cpu,
    addonPackage: `@torchformer/${name}`,
    libtorchPackage: `@torchformer/libtorch-cpu-${name}`,
    ...rest,
  };
}

/** The machines that there are, or will be, packages with binaries for. */
export const platforms: readonly Platform[] = [
  platform('linux', 'x64', {
    title: 'Linux on x86-64',
    libc: 'glibc',
    libraries: linuxLibraries,
    released: true,
  }),
  platform('linux', 'arm64', {
    title: 'Linux on 64-bit ARM',
    libc: 'glibc',
    libraries: linuxLibraries,
    released: false,
  }),
  platform('darwin', 'arm64', {
    title: 'macOS on Apple silicon',
    libc: null,
    libraries: macLibraries,
    released: false,
  }),
  platform('win32', 'x64', {
    title: 'Windows on x86-64',
    libc: null,
    libraries: windowsLibraries,
    released: false,
  }),
];

/** The machine this runs on. One that is in no list gets names made by the same rule. */
export const ownPlatform: Platform =
  platforms.find(({ os, cpu }) => os === process.platform && cpu === process.arch) ??
  platform(process.platform, process.arch, {
    title: `${process.platform} on ${process.arch}`,
    libc: null,
    libraries: linuxLibraries,
    released: false,
  });

/** The lowest version of glibc that libtorch, and so the addon, loads on. */
export const lowestGlibc = '2.28';

/** Why nothing of this package can run on this system, null when something can. */
export function unsupportedSystem(): string | null {
  if (ownPlatform.libc !== 'glibc' || processLibc().kind !== 'musl') return null;
  return (
    'torchformer cannot run on a system with the C library musl (Alpine Linux and its kin), because ' +
    `libtorch is made for glibc alone: use one with glibc ${lowestGlibc} or later, such as Debian ` +
    'or the container image node:22-slim.'
  );
}

const require = createRequire(moduleFile);

/**
 * Written out one by one, with literal names, so that tools which collect or bundle the files of an
 * application see which packages it may ask for.
 */
const resolvers: Readonly<Record<string, () => string>> = {
  '@torchformer/linux-x64': () => require.resolve('@torchformer/linux-x64/package.json'),
  '@torchformer/linux-arm64': () => require.resolve('@torchformer/linux-arm64/package.json'),
  '@torchformer/darwin-arm64': () => require.resolve('@torchformer/darwin-arm64/package.json'),
  '@torchformer/win32-x64': () => require.resolve('@torchformer/win32-x64/package.json'),
  '@torchformer/libtorch-cpu-linux-x64': () =>
    require.resolve('@torchformer/libtorch-cpu-linux-x64/package.json'),
  '@torchformer/libtorch-cpu-linux-arm64': () =>
    require.resolve('@torchformer/libtorch-cpu-linux-arm64/package.json'),
  '@torchformer/libtorch-cpu-darwin-arm64': () =>
    require.resolve('@torchformer/libtorch-cpu-darwin-arm64/package.json'),
  '@torchformer/libtorch-cpu-win32-x64': () =>
    require.resolve('@torchformer/libtorch-cpu-win32-x64/package.json'),
};

/**
 * The folder of an installed package of {@link platforms}, null when it is not installed.
 *
 * @param around folder of a package whose dependencies are looked through; default: this one
 */
export function resolvePlatformPackage(name: string, around?: string): string | null {
  const resolve =
    around === undefined
      ? resolvers[name]
      : () => createRequire(`${around}/package.json`).resolve(`${name}/package.json`);
  try {
    return resolve === undefined ? null : dirname(resolve());
  } catch {
    return null;
  }
}
