/**
 * Everything that depends on the operating system and the processor: the packages with the binaries
 * and the names of the libraries. No other part of the runtime distinguishes systems by name.
 */
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { processLibc } from './libc.js';
import { moduleFile } from '../moduleFile.js';

/** Libtorch's libraries on one operating system. */
export interface LibraryNames {
  readonly c10: string;
  readonly torchCpu: string;
  readonly torchCuda: string;
  /** Our own CUDA kernels. */
  readonly kernels: string;
  /** The library of the NVIDIA driver; null if there is none. */
  readonly cudaDriver: string | null;
  /** Matches the name of any library. */
  readonly any: RegExp;
  /** Matches the libraries of libtorch for the CPU. */
  readonly cpu: RegExp;
  /** Matches a library from NVIDIA's wheels in an error message of the linker. */
  readonly nvidia: RegExp;
  /** Whether they are ELF files, which can be checked before they are opened. */
  readonly areElf: boolean;
}

/** Where an operating system describes the machine, and how wheels for it are named. */
export interface SystemFacts {
  /** A file with a line of the processor's features; null if there is none. */
  readonly processorFile: string | null;
  /** A file that exists if an NVIDIA driver is installed; null if there is none. */
  readonly nvidiaFile: string | null;
  /** Matches the platform tags of its wheels, without the processor. */
  readonly wheelTags: RegExp;
  /** The processor, as at the end of such a tag. */
  readonly wheelMachine: string;
  /** The tags to pass to pip on another machine, where pip accepts only the tags it is given. */
  readonly pipTags: readonly string[];
}

/** One kind of machine. */
export interface Platform {
  /** As in the names of npm packages with binaries: `linux-x64`. */
  readonly name: string;
  /** For messages: `Linux on x86-64`. */
  readonly title: string;
  /** Its name in `process.platform`, `process.arch` and npm. */
  readonly os: NodeJS.Platform;
  readonly cpu: NodeJS.Architecture;
  /** The C library that its binaries need; null if the system has only one. */
  readonly libc: 'glibc' | null;
  /** npm package with the prebuilt addon. */
  readonly addonPackage: string;
  /** npm package with the CPU libraries of libtorch. */
  readonly libtorchPackage: string;
  readonly libraries: LibraryNames;
  readonly system: SystemFacts;
  /** Whether its packages are built and tested; the others are only prepared. */
  readonly released: boolean;
}

const linuxLibraries: LibraryNames = {
  c10: 'libc10.so',
  torchCpu: 'libtorch_cpu.so',
  torchCuda: 'libtorch_cuda.so',
  kernels: 'libtorchformer_cuda.so',
  cudaDriver: 'libcuda.so.1',
  any: /\.so(\.|$)/,
  cpu: /^lib(c10|torch_cpu|gomp[-.\w]*|iomp5)\.so[.\d]*$/,
  nvidia: /\blib(cu|nv)\w+\.so/,
  areElf: true,
};
const macLibraries: LibraryNames = {
  c10: 'libc10.dylib',
  torchCpu: 'libtorch_cpu.dylib',
  torchCuda: 'libtorch_cuda.dylib',
  kernels: 'libtorchformer_cuda.dylib',
  cudaDriver: null,
  any: /\.dylib$/,
  cpu: /^lib(c10|torch_cpu|i?omp5?)\.dylib$/,
  nvidia: /(?!)/,
  areElf: false,
};
const windowsLibraries: LibraryNames = {
  c10: 'c10.dll',
  torchCpu: 'torch_cpu.dll',
  torchCuda: 'torch_cuda.dll',
  kernels: 'torchformer_cuda.dll',
  cudaDriver: 'nvcuda.dll',
  any: /\.dll$/i,
  cpu: /^(c10|torch_cpu|libiomp5md|uv|fbgemm|asmjit)\.dll$/i,
  nvidia: /\b(cu|nv)\w+\.dll/i,
  areElf: false,
};

function linuxSystem(machine: string): SystemFacts {
  // The tags of torch's and NVIDIA's wheels.
  const versions = ['_2_28', '_2_27', '_2_25', '_2_18', '_2_17', '2014'];
  return {
    processorFile: '/proc/cpuinfo',
    nvidiaFile: '/proc/driver/nvidia/version',
    wheelTags: /^(manylinux|linux)/,
    wheelMachine: machine,
    pipTags: versions.map((version) => `manylinux${version}_${machine}`),
  };
}
const noSystemFiles = { processorFile: null, nvidiaFile: null };
const macSystem: SystemFacts = {
  ...noSystemFiles,
  wheelTags: /^macosx/,
  wheelMachine: 'arm64',
  pipTags: ['macosx_11_0_arm64'],
};
const windowsSystem: SystemFacts = {
  ...noSystemFiles,
  wheelTags: /^win/,
  wheelMachine: 'amd64',
  pipTags: ['win_amd64'],
};

function platform(
  os: NodeJS.Platform,
  cpu: NodeJS.Architecture,
  rest: Pick<Platform, 'title' | 'libc' | 'libraries' | 'system' | 'released'>,
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

/** The machines with current or planned packages of binaries. */
export const platforms: readonly Platform[] = [
  platform('linux', 'x64', {
    title: 'Linux on x86-64',
    libc: 'glibc',
    libraries: linuxLibraries,
    system: linuxSystem('x86_64'),
    released: true,
  }),
  platform('linux', 'arm64', {
    title: 'Linux on 64-bit ARM',
    libc: 'glibc',
    libraries: linuxLibraries,
    system: linuxSystem('aarch64'),
    released: false,
  }),
  platform('darwin', 'arm64', {
    title: 'macOS on Apple silicon',
    libc: null,
    libraries: macLibraries,
    system: macSystem,
    released: false,
  }),
  platform('win32', 'x64', {
    title: 'Windows on x86-64',
    libc: null,
    libraries: windowsLibraries,
    system: windowsSystem,
    released: false,
  }),
];

/** The machine this runs on. The names of an unlisted machine follow the same rule. */
export const ownPlatform: Platform =
  platforms.find(({ os, cpu }) => os === process.platform && cpu === process.arch) ??
  platform(process.platform, process.arch, {
    title: `${process.platform} on ${process.arch}`,
    libc: null,
    libraries: linuxLibraries,
    system: linuxSystem(process.arch),
    released: false,
  });

/** The lowest version of glibc that libtorch, and therefore the addon, runs on. */
export const lowestGlibc = '2.28';

/** Why this package cannot run on this system, or null if it can. */
export function unsupportedSystem(): string | null {
  if (ownPlatform.libc !== 'glibc' || processLibc().kind !== 'musl') return null;
  return (
    'torchformer cannot run on systems with the C library musl (such as Alpine Linux), because ' +
    `libtorch is built only for glibc: use a system with glibc ${lowestGlibc} or later, such as ` +
    'Debian or the container image node:22-slim.'
  );
}

const require = createRequire(moduleFile);

/**
 * Written out with literal names, so that tools that collect or bundle the files of an application
 * see which packages it may require.
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
 * The folder of a package of {@link platforms}, or null if it is not installed.
 *
 * @param dependent folder of the package whose dependencies are searched; default: this package
 */
export function resolvePlatformPackage(name: string, dependent?: string): string | null {
  const resolve =
    dependent === undefined
      ? resolvers[name]
      : () => createRequire(`${dependent}/package.json`).resolve(`${name}/package.json`);
  try {
    return resolve === undefined ? null : dirname(resolve());
  } catch {
    return null;
  }
}
