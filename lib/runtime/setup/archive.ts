/** Unpacks libtorch from a wheel, a zip archive or a gzipped tar archive. */
import { createWriteStream } from 'node:fs';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import {
  ArchiveFault,
  archiveFiles,
  UnsafeArchive,
  unsafeName,
  type ArchiveFile,
} from './archiveFiles.js';
import { checkSpace } from '../diskSpace.js';
import { TorchError } from '../errors.js';
import { makeFolder } from '../makeFolder.js';
import { ownPlatform } from '../native/platform.js';

export interface Unpacked {
  /** The requirements of the wheel, in pip's syntax; empty for other archives. */
  readonly requirements: readonly string[];
  /** How many files were unpacked. */
  readonly files: number;
}

/**
 * Unpacks libtorch's libraries, headers, version and licences from `archive` to `target/torch`.
 * For the CPU these are only the three libraries that it needs, for CUDA all except those for
 * Python. An `nvidia/` folder, as in NVIDIA's wheels, is unpacked beside it.
 *
 * @throws TorchError ERR_NATIVE_LOAD if the archive cannot be read, does not contain libtorch, or
 *   has paths or links that lead out of `target`; nothing is written then
 */
export async function unpackLibtorch(
  archive: string,
  target: string,
  variant: 'cpu' | 'cuda',
): Promise<Unpacked> {
  return await explainFaults(archive, async () => {
    const requirements = await survey(archive, target, variant);
    let files = 0;
    const folders = new Set<string>();
    for await (const file of archiveFiles(archive)) {
      const place = placeOf(file.name, variant);
      if (place === null) continue;
      const path = join(target, place);
      // A wheel has 9,000 headers in 800 folders.
      if (!folders.has(dirname(path))) await makeFolder(dirname(path));
      folders.add(dirname(path));
      // Like pip, this does not set the execute bit of libraries; nothing depends on it.
      await pipeline(file.content(), createWriteStream(path));
      files++;
    }
    if (files === 0) {
      throw new ArchiveFault('it does not contain libtorch (no torch/lib and no libtorch/lib)');
    }
    return { requirements, files };
  });
}

/** System errors from damaged names: a path that is too long, a file that exists as a folder. */
const pathFaults = ['ENAMETOOLONG', 'ENOTDIR', 'EISDIR', 'EEXIST'];

/** Runs `action`; a fault of the archive becomes an error that names the archive and the fix. */
async function explainFaults<T>(archive: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (thrown) {
    const { code = '', message } = thrown as NodeJS.ErrnoException;
    const error = pathFaults.includes(code)
      ? new ArchiveFault(`it is damaged: it contains an invalid name (${message})`)
      : thrown;
    if (!(error instanceof ArchiveFault)) throw error;
    const advice =
      error instanceof UnsafeArchive
        ? 'Archives of libtorch have no such entries: use one from a source that you trust.'
        : 'It must be a complete torch wheel, or a zip or tar.gz archive of libtorch; fetch it again.';
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      `${archive} cannot be unpacked: ${error.message}. ${advice}`,
      { cause: error },
    );
  }
}

/** The requirements of a wheel, in pip's syntax. @throws TorchError ERR_NATIVE_LOAD */
export async function requirementsOf(wheel: string): Promise<readonly string[]> {
  return await explainFaults(wheel, async () => {
    for await (const file of archiveFiles(wheel)) {
      if (isMetadata(file)) return requirementsIn(await textOf(file));
    }
    return [];
  });
}

function isMetadata({ name }: ArchiveFile): boolean {
  return /^[^/]+\.dist-info\/METADATA$/.test(name);
}

/** Checks the whole archive before anything is written. @returns the requirements of the wheel */
async function survey(
  archive: string,
  target: string,
  variant: 'cpu' | 'cuda',
): Promise<readonly string[]> {
  let requirements: readonly string[] = [];
  let bytes = 0;
  for await (const file of archiveFiles(archive)) {
    refuseUnsafe(file);
    if (placeOf(file.name, variant) !== null) bytes += file.size;
    if (isMetadata(file)) requirements = requirementsIn(await textOf(file));
  }
  await checkSpace(target, bytes, `unpacking ${archive}`);
  return requirements;
}

function refuseUnsafe({ name, link }: ArchiveFile): void {
  if (name.split(/[/\\]/).includes('..') || /^[/\\]|^[a-z]:/i.test(name)) {
    throw unsafeName(name);
  }
  if (name.includes('\0')) throw new ArchiveFault(`it is damaged: it contains the name ${name}`);
  if (link)
    throw new UnsafeArchive(`it contains a link, which may lead out of its folder: ${name}`);
}

const pythonLibraries =
  /^lib(torch_python|shm|torchbind_test|jitbackend_test|backend_with_compiler|aoti_custom_ops)/;
/** The root of a wheel is torch/, of the official archive libtorch/, of an npm package package/. */
const roots = ['torch', 'libtorch', 'package'];

/** The path below the target for a file of the archive; null if it is not needed. */
function placeOf(name: string, variant: 'cpu' | 'cuda'): string | null {
  const { libraries } = ownPlatform;
  const [first = '', ...rest] = name.split('/');
  const file = rest.at(-1) ?? '';
  if (first === 'nvidia') return variant === 'cuda' && libraries.any.test(file) ? name : null;
  if (first === 'torch.libs') return name;
  if (first.endsWith('.dist-info') && rest.includes('licenses')) {
    return ['torch', ...rest.slice(rest.indexOf('licenses'))].join('/');
  }
  if (!roots.includes(first)) return null;
  const inTorch = ['torch', ...rest].join('/');
  const folder = rest[0] ?? '';
  if (['include', 'licenses'].includes(folder)) return inTorch;
  if (rest.length === 1 && ['version.py', 'build-version'].includes(file)) return inTorch;
  if (folder !== 'lib' || rest.length !== 2 || !libraries.any.test(file)) return null;
  const wanted = variant === 'cpu' ? libraries.cpu.test(file) : !pythonLibraries.test(file);
  return wanted ? inTorch : null;
}

/** Limit for text that is read into memory; the metadata of torch has 30 kB. */
const largestText = 16 * 2 ** 20;

async function textOf(file: ArchiveFile): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of file.content()) {
    bytes += chunk.length;
    if (bytes > largestText) {
      throw new ArchiveFault(`${file.name} in it has more than ${largestText} bytes of text`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function requirementsIn(metadata: string): readonly string[] {
  return [...metadata.matchAll(/^Requires-Dist: (.*)$/gm)].map(([, line = '']) => line.trim());
}
