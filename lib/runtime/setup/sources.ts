/** The sources of libtorch for setup: a folder, a wheel or archive, a URL, pip, a package index. */
import { readdirSync } from 'node:fs';
import { mkdir, realpath, rm, symlink } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { unpackLibtorch } from './archive.js';
import { missingNvidiaLibraries } from '../native/checkLibraries.js';
import { checkSpace } from '../diskSpace.js';
import { checkSum, download } from './download.js';
import { TorchError } from '../errors.js';
import { isUrl } from './http.js';
import { inspectLibtorch } from '../native/libtorchFolder.js';
import { kindOf } from '../makeFolder.js';
import { nvidiaRequirements, nvidiaWheelsOfIndex } from './nvidia.js';
import { offlineInstructions, torchRequirement } from './offline.js';
import { libtorchVersion } from '../package.js';
import { downloadWheels, hasPip } from './pip.js';
import { findPython } from '../native/python.js';
import { configuredIndex, findTorchWheel } from './wheelIndex.js';

/** What to obtain, and the folders to use. */
export interface SourceRequest {
  /** The folder for `torch/`, and for `nvidia/` if it is needed. */
  readonly ready: string;
  /** A temporary folder of this setup. */
  readonly work: string;
  /** The folder for downloads, which a later setup can continue. */
  readonly downloads: string;
  /** Receives the paths of downloads that are no longer needed after setup has succeeded. */
  readonly used: string[];
  readonly variant: 'cpu' | 'cuda';
  readonly from: string | undefined;
  readonly sha256: string | undefined;
  readonly indexUrl: string | undefined;
  readonly log: (line: string) => void;
}

/**
 * Puts libtorch in `ready`.
 *
 * @returns the source, for messages
 * @throws TorchError ERR_NATIVE_LOAD
 */
export async function obtain(request: SourceRequest): Promise<string> {
  const { from, sha256, downloads, used, log } = request;
  if (from === undefined) return await obtainPinned(request);
  if (isUrl(from)) {
    const expected = sha256 ?? checksumIn(from);
    const file = await download(from, { folder: downloads, sha256: expected, log });
    used.push(file);
    await unpack(request, file, []);
    return from;
  }
  const path = resolve(from);
  const kind = kindOf(path);
  if (kind === null) throw new TorchError('ERR_NATIVE_LOAD', `${path} does not exist`);
  if (kind === 'folder') {
    if (sha256 !== undefined) {
      throw new TypeError(
        `setUpLibtorch: sha256 is the checksum of a file, and ${path} is a folder`,
      );
    }
    await obtainFromFolder(request, path);
    return path;
  }
  if (sha256 !== undefined) await checkSum(path, sha256);
  await unpack(request, path, wheelsIn(dirname(path)));
  return path;
}

/** The checksum after `#sha256=` in a URL. */
export function checksumIn(url: string): string | undefined {
  return /#(?:.*&)?sha256=([0-9a-f]{64})(?:&|$)/i.exec(url)?.[1];
}

// ---- a folder -----------------------------------------------------------------------------------

async function obtainFromFolder(request: SourceRequest, path: string): Promise<void> {
  const folder = inspectLibtorch(path);
  if (typeof folder !== 'string') {
    // It is not copied, because it is the user's own and a CUDA build has several gigabytes.
    await symlink(await realpath(folder.root), join(request.ready, 'torch'));
    return;
  }
  const wheels = wheelsIn(path);
  const fitting = wheels.filter((wheel) => /^torch-[^-]+-.*\.whl$/.test(basename(wheel)));
  const own = fitting.find((wheel) => versionOf(wheel) === libtorchVersion) ?? fitting[0];
  if (own === undefined) {
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      `${path} ${folder}. It must be a folder that contains libtorch (the torch/ of site-packages, ` +
        `an unpacked libtorch/) or the wheel torch-${libtorchVersion}-….whl`,
    );
  }
  await unpack(request, own, wheels);
}

function versionOf(wheel: string): string | undefined {
  return basename(wheel).split('-')[1]?.split('+')[0];
}

function wheelsIn(folder: string): readonly string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.whl'))
    .map((name) => join(folder, name));
}

// ---- the pinned wheel ---------------------------------------------------------------------------

/** Rough sizes, packed and unpacked together, because pip's download size is not known before. */
const roughBytes = { cpu: 0.7e9, cuda: 8e9 };

async function obtainPinned(request: SourceRequest): Promise<string> {
  const { variant, indexUrl, work, downloads, used, sha256, log } = request;
  const size = variant === 'cpu' ? 'CPU, about 200 MB' : 'CUDA, about 3 GB';
  const python = await pythonWithPip();
  if (python !== null) {
    log(`fetching libtorch ${libtorchVersion} (${size}) with pip`);
    await checkSpace(work, roughBytes[variant], `libtorch with ${variant} libraries`);
    const requirement = torchRequirement(variant);
    const wheels = await downloadWheels(python, [requirement], join(work, 'pip'), { indexUrl });
    const [wheel] = wheels ?? [];
    if (wheel === undefined) {
      throw new TorchError(
        'ERR_NATIVE_LOAD',
        `pip could not download ${requirement}; see its output above.\n${offlineInstructions(variant)}`,
      );
    }
    if (sha256 !== undefined) await checkSum(wheel, sha256);
    await unpack(request, wheel, []);
    return 'the wheel that pip downloaded';
  }

  const index = indexUrl ?? configuredIndex();
  if (index === null) {
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      'this machine has no Python 3 with pip, so setup needs a package index: pass ' +
        '`--index-url <the simple URL of a Python package index>`, or set PIP_INDEX_URL.\n' +
        offlineInstructions(variant),
    );
  }
  log(`fetching libtorch ${libtorchVersion} (${size}) from the package index`);
  try {
    const wheel = await findTorchWheel(index, libtorchVersion, variant);
    const expected = sha256 ?? wheel.sha256;
    const file = await download(wheel.url, { folder: downloads, sha256: expected, log });
    used.push(file);
    await unpack(request, file, []);
    return wheel.filename;
  } catch (error) {
    if (!(error instanceof TorchError) || !isConnectionFault(error)) throw error;
    throw new TorchError('ERR_NATIVE_LOAD', `${error.message}\n${offlineInstructions(variant)}`, {
      cause: error,
    });
  }
}

/** Whether there was no response at all, in which case the machine may have no network. */
function isConnectionFault(error: TorchError): boolean {
  for (let at: unknown = error.cause; at instanceof Error; at = at.cause) {
    const { code } = at as NodeJS.ErrnoException;
    if (code !== undefined && /^(E[A-Z]+|UND_ERR_\w+)$/.test(code)) return true;
  }
  return false;
}

async function pythonWithPip(): Promise<string | null> {
  const python = findPython();
  return python !== null && (await hasPip(python)) ? python : null;
}

// ---- unpacking ----------------------------------------------------------------------------------

/** @param beside other wheels in the folder of the archive, which may include NVIDIA's */
async function unpack(
  request: SourceRequest,
  archive: string,
  beside: readonly string[],
): Promise<void> {
  const { ready, variant, log } = request;
  log(`unpacking ${basename(archive).replace(/^[0-9a-f]{12}-/, '')}`);
  const { requirements } = await unpackLibtorch(archive, ready, variant);
  if (typeof inspectLibtorch(ready) === 'string') return;
  const wanted = nvidiaRequirements(requirements, variant);
  if (wanted.length === 0 && missingNvidiaLibraries(ready).length === 0) return;

  const near = beside.filter((wheel) => basename(wheel).startsWith('nvidia_'));
  for (const wheel of near) {
    if (variant === 'cpu' && !/^nvidia_cuda_(runtime|cupti)/.test(basename(wheel))) continue;
    log(`unpacking ${basename(wheel)}`);
    await unpackLibtorch(wheel, ready, 'cuda');
  }
  if (near.length > 0 && missingNvidiaLibraries(ready).length === 0) return;
  if (wanted.length > 0) await addNvidiaLibraries(request, wanted);
  const missing = missingNvidiaLibraries(ready);
  if (missing.length === 0) return;
  throw new TorchError(
    'ERR_NATIVE_LOAD',
    `this build needs NVIDIA's libraries ${missing.join(', ')}, which did not come with it.\n` +
      offlineInstructions(variant),
  );
}

/** Unpacks them to `nvidia/` beside `torch/`, where libtorch searches. */
async function addNvidiaLibraries(
  { ready, work, downloads, used, variant, indexUrl, log }: SourceRequest,
  wanted: readonly string[],
): Promise<void> {
  log('fetching the NVIDIA libraries that this build needs');
  const python = await pythonWithPip();
  if (python !== null) {
    const folder = join(work, 'nvidia');
    await mkdir(folder);
    const wheels = await downloadWheels(python, wanted, folder, { dependencies: true, indexUrl });
    if (wheels === null) {
      throw new TorchError(
        'ERR_NATIVE_LOAD',
        `pip could not download ${wanted.join(', ')}; see its output above.\n${offlineInstructions(variant)}`,
      );
    }
    for (const wheel of wheels) {
      if (!basename(wheel).startsWith('nvidia_')) continue;
      await unpackLibtorch(wheel, ready, 'cuda');
      await rm(wheel);
    }
    return;
  }
  const index = indexUrl ?? configuredIndex();
  if (index === null) return;
  for await (const wheel of nvidiaWheelsOfIndex(index, wanted, { folder: downloads, used, log })) {
    await unpackLibtorch(wheel, ready, 'cuda');
  }
}
