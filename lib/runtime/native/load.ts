/** Loads the native addon at its first use: bootstrap, libtorch, addon, in this order. */
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

/** The plain C addon that needs no libtorch (native/bootstrap). */
export interface Bootstrap {
  /** Opens libtorch for good. Throws ERR_NATIVE_LOAD or ERR_LIBTORCH_VERSION. */
  open(folder: string, withCuda: boolean): { abi: bigint; cuda: boolean; cudaError?: string };
  /** The libtorch_cpu.so that is in this process. */
  loaded(): string | null;
  /** Whether the dynamic linker can open a library. */
  opens(name: string): boolean;
  /** Opens a library for good; null, or why it does not open. */
  library(folder: string, name: string): string | null;
  /** Swaps two paths in one step; null, or the name of the error (`ENOSYS`, …). */
  exchange(first: string, second: string): string | null;
  /** What the addon was built for. */
  readonly expectedVersion: string;
  readonly expectedAbi: bigint;
}

/** What was loaded, for `doctor` and for messages. */
export interface LoadedRuntime {
  readonly addon: string;
  readonly libtorch: LibtorchFolder & { readonly place: string };
  readonly cuda: CudaDecision;
  /** Null, or why our own CUDA kernels are not there though the CUDA library is open. */
  readonly kernelsProblem: string | null;
}

/** Whether the CUDA library was opened, and why or why not. */
export interface CudaDecision {
  readonly open: boolean;
  readonly reason: string;
  /** What to do where it was not opened and should be; null where it was. */
  readonly wayOut: string | null;
}

const require = createRequire(moduleFile);

const { libraries } = ownPlatform;

let bootstrapModule: Bootstrap | null = null;
let addonModule: NativeAddon<unknown> | null = null;
let runtime: LoadedRuntime | null = null;

/**
 * The native addon, loaded at the first call. `Tensor` is what its caller's `makeTensor` makes: only
 * one caller in a process initializes it.
 *
 * @throws TorchError ERR_NATIVE_LOAD (no addon, no libtorch, or one that does not open),
 *   ERR_LIBTORCH_VERSION, ERR_CUDA_UNAVAILABLE (`TORCHFORMER_CUDA=1` and no CUDA library)
 */
export function nativeAddon<Tensor>(): NativeAddon<Tensor> {
  addonModule ??= loadAddon();
  return addonModule as NativeAddon<Tensor>;
}

/** What {@link nativeAddon} loaded, null before. */
export function loadedRuntime(): LoadedRuntime | null {
  return runtime;
}

/** The bootstrap addon; it needs no libtorch. @throws TorchError ERR_NATIVE_LOAD */
export function bootstrap(): Bootstrap {
  bootstrapModule ??= requireNative(findAddon().bootstrap) as Bootstrap;
  return bootstrapModule;
}

/**
 * Swaps two files or folders in one step: whoever opens either path sees the old or the new one,
 * never none.
 *
 * @returns null, or the name of the system's error: `ENOSYS` and `EINVAL` mean that this system or
 *   file system cannot do it
 */
export function exchangePaths(first: string, second: string): string | null {
  return bootstrap().exchange(first, second);
}

/**
 * Whether to open the CUDA library. It has to be decided before libtorch does anything: the first
 * question about CUDA settles for the whole process whether there is any.
 *
 * @throws TypeError for a `TORCHFORMER_CUDA` other than 0, 1 or empty;
 *   TorchError ERR_CUDA_UNAVAILABLE for 1 when this libtorch has no CUDA library
 */
export function decideCuda(
  libtorch: LibtorchFolder & { readonly place: string },
  environment: NodeJS.ProcessEnv = process.env,
): CudaDecision {
  const wish = cudaWish(environment);
  if (wish === '0') {
    return { open: false, reason: 'TORCHFORMER_CUDA=0', wayOut: 'Unset TORCHFORMER_CUDA.' };
  }
  if (!libtorch.cuda) {
    if (wish === '1') throw cudaMissing(libtorch);
    return {
      open: false,
      reason: 'this libtorch is a CPU build',
      wayOut: isVariable(libtorch.place)
        ? `Set ${libtorch.place} to a libtorch with CUDA, or unset it and run \`npx torchformer setup --cuda\`.`
        : 'Run `npx torchformer setup --cuda`.',
    };
  }
  if (wish === '1') return { open: true, reason: 'TORCHFORMER_CUDA=1', wayOut: null };
  const { cudaDriver } = libraries;
  if (cudaDriver === null || !bootstrap().opens(cudaDriver)) {
    return {
      open: false,
      reason: `no NVIDIA driver (${cudaDriver ?? 'none'} does not open)`,
      wayOut: "Install NVIDIA's driver; `nvidia-smi` shows whether it works.",
    };
  }
  return { open: true, reason: 'an NVIDIA driver is there', wayOut: null };
}

/** @throws TypeError for a `TORCHFORMER_CUDA` other than 0, 1 or empty */
export function cudaWish(environment: NodeJS.ProcessEnv = process.env): '' | '0' | '1' {
  const wish = environment['TORCHFORMER_CUDA'] ?? '';
  if (wish === '' || wish === '0' || wish === '1') return wish;
  throw new TypeError(`TORCHFORMER_CUDA must be 0, 1 or unset, got "${wish}"`);
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
 * Opens our CUDA kernels, which register themselves. Without them GPUs work all the same: the ops then
 * are made of libtorch's.
 *
 * @returns null, or what is wrong
 */
function openKernels(addon: string): string | null {
  const folder = dirname(addon);
  const { kernels } = libraries;
  if (!existsSync(join(folder, kernels))) return `${folder} has no ${kernels}`;
  return bootstrap().library(folder, kernels);
}

/** Where all copies of this package look; each worker thread has one of its own. */
const copyInUse = Symbol.for('torchformer.copyInUse');

interface CopyInUse {
  [copyInUse]?: { readonly package: string; readonly addon: string };
}

/** Tensors of two copies would not know each other, though they share one libtorch. */
function refuseSecondCopy(addon: string): void {
  const first = (globalThis as CopyInUse)[copyInUse];
  if (first === undefined) return;
  throw new TorchError(
    'ERR_NATIVE_LOAD',
    `the torchformer in ${first.package} (addon ${first.addon}) is in use, so the copy in ` +
      `${packageRoot} (addon ${addon}) cannot be used beside it. Make the installation hold one ` +
      'copy of the package (`npm ls torchformer`, `npm dedupe`).',
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
  return { open: false, reason, wayOut: '`npx torchformer doctor` tells more.' };
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
  // Even the CPU library of a CUDA build needs a few of NVIDIA's.
  const hint = ownPlatform.libraries.nvidia.test(error.message)
    ? 'It is a CUDA build: it needs the folder nvidia/ beside torch/, as in site-packages.'
    : (systemTooOld(error.message) ??
      (isVariable(libtorch.place)
        ? `Set ${libtorch.place} to a whole libtorch, or unset it.`
        : '`npx torchformer setup --force` fetches it anew.'));
  return new TorchError(
    'ERR_NATIVE_LOAD',
    `${where} does not open: ${error.message}.\n${hint}` +
      (others.length > 0 ? ` Before it, these were looked at:${others.join('')}` : ''),
    { cause: error },
  );
}

/** `require` of a .node file; the linker's complaint becomes a TorchError that names the file. */
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

/** What to do when the linker misses a version of the system's own libraries. */
function systemTooOld(complaint: string): string | null {
  if (!/version `(GLIBC|GLIBCXX|CXXABI)_[\d.]+' not found/.test(complaint)) return null;
  return (
    `The C or C++ library of this system is older than libtorch needs: use a system with glibc ` +
    `${lowestGlibc} and the libstdc++ of GCC 7 or later.`
  );
}
