/** Loads the native addon on first use, in this order: bootstrap, libtorch, addon. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { findAddon } from './addonFiles.js';
import { TorchError } from '../errors.js';
import { isVariable, libtorchMissing, searchLibtorch, type Search } from './findLibtorch.js';
import type { LibtorchFolder } from './libtorchFolder.js';
import type { NativeAddon } from './nativeAddon.js';
import { moduleFile } from '../moduleFile.js';
import { packageRoot } from '../package.js';
import { lowestGlibc, ownPlatform, unsupportedSystem } from './platform.js';

/** The addon in plain C that does not need libtorch (native/bootstrap). */
export interface Bootstrap {
  /** Opens libtorch permanently. Throws ERR_NATIVE_LOAD or ERR_LIBTORCH_VERSION. */
  open(folder: string, withCuda: boolean): { abi: bigint; cuda: boolean; cudaError?: string };
  /** The path of the loaded libtorch_cpu.so. */
  loaded(): string | null;
  /** Whether the dynamic linker can open a library. */
  opens(name: string): boolean;
  /** Opens a library permanently; returns null, or why it does not open. */
  library(folder: string, name: string): string | null;
  /** Swaps two paths atomically; returns null, or the name of the error (`ENOSYS`, …). */
  exchange(first: string, second: string): string | null;
  /** The version of libtorch that the addon was built for. */
  readonly expectedVersion: string;
  readonly expectedAbi: bigint;
}

/** What was loaded, for `doctor` and for messages. */
export interface LoadedRuntime {
  readonly addon: string;
  readonly libtorch: LibtorchFolder & { readonly place: string };
  readonly cuda: CudaDecision;
  /** Null, or why our CUDA kernels are not loaded although the CUDA library is open. */
  readonly kernelsProblem: string | null;
}

/** Whether the CUDA library was opened, and why or why not. */
export interface CudaDecision {
  readonly open: boolean;
  readonly reason: string;
  /** How to get it opened; null if it was opened. */
  readonly fix: string | null;
}

const require = createRequire(moduleFile);

const { libraries } = ownPlatform;

let bootstrapModule: Bootstrap | null = null;
let addonModule: NativeAddon<unknown> | null = null;
let runtime: LoadedRuntime | null = null;

/**
 * The native addon, loaded on the first call. `Tensor` is the type that the caller's `makeTensor`
 * creates; only one caller in a process initializes the addon.
 *
 * @throws TorchError ERR_NATIVE_LOAD (no addon, no libtorch, or one that does not open),
 *   ERR_LIBTORCH_VERSION, ERR_CUDA_UNAVAILABLE (`TORCHFORMER_CUDA=1` without a CUDA library)
 */
export function nativeAddon<Tensor>(): NativeAddon<Tensor> {
  addonModule ??= loadAddon();
  return addonModule as NativeAddon<Tensor>;
}

/** What {@link nativeAddon} loaded; null before it was called. */
export function loadedRuntime(): LoadedRuntime | null {
  return runtime;
}

/** The bootstrap addon, which needs no libtorch. @throws TorchError ERR_NATIVE_LOAD */
export function bootstrap(): Bootstrap {
  bootstrapModule ??= requireNative(findAddon().bootstrap) as Bootstrap;
  return bootstrapModule;
}

/**
 * Swaps two files or folders atomically: at any time, both paths exist.
 *
 * @returns null, or the name of the system's error: `ENOSYS` and `EINVAL` mean that this system or
 *   file system does not support it
 */
export function exchangePaths(first: string, second: string): string | null {
  return bootstrap().exchange(first, second);
}

/**
 * Whether to open the CUDA library. This must be decided before libtorch is used, because libtorch
 * determines only once per process whether CUDA is available.
 *
 * @throws TypeError if `TORCHFORMER_CUDA` is not 0, 1 or empty;
 *   TorchError ERR_CUDA_UNAVAILABLE if it is 1 and this libtorch has no CUDA library
 */
export function decideCuda(
  libtorch: LibtorchFolder & { readonly place: string },
  environment: NodeJS.ProcessEnv = process.env,
): CudaDecision {
  const setting = cudaSetting(environment);
  if (setting === '0') {
    return { open: false, reason: 'TORCHFORMER_CUDA=0', fix: 'Unset TORCHFORMER_CUDA.' };
  }
  if (!libtorch.cuda) {
    if (setting === '1') throw cudaMissing(libtorch);
    return {
      open: false,
      reason: 'this libtorch is a CPU build',
      fix: isVariable(libtorch.place)
        ? `Set ${libtorch.place} to a libtorch with CUDA, or unset it and run \`npx torchformer setup --cuda\`.`
        : 'Run `npx torchformer setup --cuda`.',
    };
  }
  if (setting === '1') return { open: true, reason: 'TORCHFORMER_CUDA=1', fix: null };
  const { cudaDriver } = libraries;
  if (cudaDriver === null || !bootstrap().opens(cudaDriver)) {
    return {
      open: false,
      reason: `no NVIDIA driver (${cudaDriver ?? 'none'} does not open)`,
      fix: 'Install the NVIDIA driver; `nvidia-smi` shows whether it works.',
    };
  }
  return { open: true, reason: 'an NVIDIA driver is installed', fix: null };
}

/** The value of `TORCHFORMER_CUDA`. @throws TypeError if it is not 0, 1 or empty */
export function cudaSetting(environment: NodeJS.ProcessEnv = process.env): '' | '0' | '1' {
  const setting = environment['TORCHFORMER_CUDA'] ?? '';
  if (setting === '' || setting === '0' || setting === '1') return setting;
  throw new TypeError(`TORCHFORMER_CUDA must be 0, 1 or unset, got "${setting}"`);
}

/** The error for `TORCHFORMER_CUDA=1` with a CPU build. */
export function cudaMissing({ libraries: folder }: LibtorchFolder): TorchError {
  return new TorchError(
    'ERR_CUDA_UNAVAILABLE',
    `TORCHFORMER_CUDA=1, but ${folder} has no ${libraries.torchCuda}: it is a CPU build. ` +
      'Run `npx torchformer setup --cuda`, or unset TORCHFORMER_CUDA.',
  );
}

function loadAddon(): NativeAddon<unknown> {
  const { addon } = findAddon();
  refuseSecondCopy(addon);
  const { expectedVersion } = bootstrap();
  const search = searchLibtorch({ version: expectedVersion });
  if (search.found === null) throw libtorchMissing(search, expectedVersion);
  const libtorch = search.found;
  const cuda = openLibtorch(libtorch, decideCuda(libtorch), search);
  const loaded = requireNative(addon) as NativeAddon<unknown>;
  runtime = { addon, libtorch, cuda, kernelsProblem: cuda.open ? openKernels(addon) : null };
  (globalThis as CopyInUse)[copyInUse] = { package: packageRoot, addon };
  return loaded;
}

/**
 * Opens our CUDA kernels, which register themselves. GPUs also work without them: the ops are then
 * composed of libtorch's.
 *
 * @returns null, or what is wrong
 */
function openKernels(addon: string): string | null {
  const folder = dirname(addon);
  const { kernels } = libraries;
  if (!existsSync(join(folder, kernels))) return `${folder} has no ${kernels}`;
  return bootstrap().library(folder, kernels);
}

/** Shared by all copies of this package; each worker thread has its own. */
const copyInUse = Symbol.for('torchformer.copyInUse');

interface CopyInUse {
  [copyInUse]?: { readonly package: string; readonly addon: string };
}

/** Two copies share one libtorch, but could not use each other's tensors. */
function refuseSecondCopy(addon: string): void {
  const first = (globalThis as CopyInUse)[copyInUse];
  if (first === undefined) return;
  throw new TorchError(
    'ERR_NATIVE_LOAD',
    `the torchformer in ${first.package} (addon ${first.addon}) is in use, so the copy in ` +
      `${packageRoot} (addon ${addon}) cannot be used beside it. Install only one copy of the ` +
      'package (`npm ls torchformer`, `npm dedupe`).',
  );
}

function openLibtorch(
  libtorch: LibtorchFolder & { readonly place: string },
  decision: CudaDecision,
  search: Search,
): CudaDecision {
  let opened: ReturnType<Bootstrap['open']>;
  try {
    opened = bootstrap().open(libtorch.libraries, decision.open);
  } catch (error) {
    throw openingFault(error as NodeJS.ErrnoException, libtorch, search);
  }
  if (!decision.open || opened.cuda) return decision;
  const reason = `${libraries.torchCuda} does not open: ${opened.cudaError ?? 'no reason given'}`;
  if (process.env['TORCHFORMER_CUDA'] === '1') {
    throw new TorchError('ERR_CUDA_UNAVAILABLE', `TORCHFORMER_CUDA=1, but ${reason}`);
  }
  return { open: false, reason, fix: 'Run `npx torchformer doctor` for details.' };
}

function openingFault(
  error: NodeJS.ErrnoException,
  libtorch: LibtorchFolder & { readonly place: string },
  search: Search,
): TorchError {
  const where = `libtorch in ${libtorch.libraries} (from ${libtorch.place})`;
  if (error.code === 'ERR_LIBTORCH_VERSION') {
    return new TorchError(
      'ERR_LIBTORCH_VERSION',
      `${error.message}. Run \`npx torchformer setup\` for the right version, or set ` +
        `TORCHFORMER_LIBTORCH to a folder with it (now: ${libtorch.place}).`,
      { cause: error },
    );
  }
  const others = search.attempts
    .filter(({ problem }) => problem !== null)
    .map(
      ({ place, path, problem }) => `\n  ${place}${path === null ? '' : ` ${path}`}: ${problem}`,
    );
  // Even the CPU library of a CUDA build needs some of NVIDIA's libraries.
  const hint = ownPlatform.libraries.nvidia.test(error.message)
    ? 'It is a CUDA build: it needs the folder nvidia/ beside torch/, as in site-packages.'
    : (systemTooOld(error.message) ??
      (isVariable(libtorch.place)
        ? `Set ${libtorch.place} to a complete libtorch, or unset it.`
        : 'Run `npx torchformer setup --force` to download it again.'));
  return new TorchError(
    'ERR_NATIVE_LOAD',
    `${where} does not open: ${error.message}.\n${hint}` +
      (others.length > 0 ? ` Searched before it:${others.join('')}` : ''),
    { cause: error },
  );
}

/** Requires a .node file; an error of the linker becomes a TorchError that names the file. */
function requireNative(file: string): unknown {
  try {
    return require(file);
  } catch (error) {
    if (error instanceof TorchError) throw error;
    const { message } = error as Error;
    const fix =
      systemTooOld(message) ??
      'In a checkout, run `npm run build`; otherwise install the package again on this machine.';
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      unsupportedSystem() ?? `${file} does not load: ${message}. ${fix}`,
      { cause: error },
    );
  }
}

/** What to do if the linker does not find a version of a system library; else null. */
function systemTooOld(message: string): string | null {
  if (!/version `(GLIBC|GLIBCXX|CXXABI)_[\d.]+' not found/.test(message)) return null;
  return (
    `The C or C++ library of this system is too old for libtorch: use a system with glibc ` +
    `${lowestGlibc} and the libstdc++ of GCC 7 or later.`
  );
}
