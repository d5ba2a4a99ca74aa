/** Made-up libraries, wheels and archives of libtorch: a few kB that set-up takes for the real ones. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { crc32, deflateRawSync } from 'node:zlib';
import { writeFiles } from './support.js';

export const version = '2.13.0';
export const python = process.env['TORCHFORMER_PYTHON'] ?? 'python3';
const ownMachine = process.arch === 'arm64' ? 183 : 62;

export type Files = Readonly<Record<string, string | Buffer>>;

/** An ELF header alone, then `text`; with `sections`, it points to a section table far behind. */
export function library(text: string, { machine = ownMachine, sections = 0 } = {}): Buffer {
  const header = Buffer.alloc(64);
  header.write('\x7fELF\x02\x01\x01', 'latin1');
  header.writeUInt16LE(3, 16);
  header.writeUInt16LE(machine, 18);
  header.writeUInt32LE(1, 20);
  if (sections > 0) {
    header.writeBigUInt64LE(BigInt(1_000_000), 40);
    header.writeUInt16LE(64, 58);
    header.writeUInt16LE(sections, 60);
  }
  return Buffer.concat([header, Buffer.from(text)]);
}

/** What a wheel of torch holds, as far as set-up cares, and some that it must leave out. */
export function wheelFiles(wheelVersion: string): Record<string, string | Buffer> {
  return {
    'torch/version.py': `__version__ = '${wheelVersion}'\n`,
    'torch/__init__.py': '',
    'torch/lib/libc10.so': library('c10'),
    'torch/lib/libtorch_cpu.so': library('cpu'),
    'torch/lib/libgomp.so.1': library('gomp'),
    'torch/lib/libtorch_cuda.so': library('cuda'),
    'torch/lib/libtorch_python.so': library('python'),
    'torch/include/torch/headeronly/version.h': '',
    [`torch-${wheelVersion}.dist-info/METADATA`]: 'Name: torch\nRequires-Dist: filelock\n',
    [`torch-${wheelVersion}.dist-info/licenses/LICENSE`]: 'terms',
  };
}

/** What one entry of a zip archive says of itself, where that is not the truth. */
export interface Claims {
  /** The file type and permissions of Unix. */
  readonly mode?: number;
  readonly size?: number;
  readonly checksum?: number;
}

/** A zip archive of these files; `claims` by name. */
export function zipBytes(files: Files, claims: Readonly<Record<string, Claims>> = {}): Buffer {
  const bodies: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, content] of Object.entries(files)) {
    const { mode = 0o100644, size, checksum } = claims[name] ?? {};
    const data = Buffer.from(content);
    const packed = deflateRawSync(data);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(0x800, 2);
    common.writeUInt16LE(8, 4);
    common.writeUInt32LE(checksum ?? crc32(data), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(size ?? data.length, 18);
    common.writeUInt16LE(Buffer.byteLength(name), 22);
    const body = Buffer.concat([Buffer.from('PK\x03\x04'), common, Buffer.from(name), packed]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE((mode * 0x10000) >>> 0, 6);
    rest.writeUInt32LE(offset, 10);
    directory.push(
      Buffer.concat([
        Buffer.from('PK\x01\x02'),
        Buffer.from([20, 3]),
        common,
        rest,
        Buffer.from(name),
      ]),
    );
    bodies.push(body);
    offset += body.length;
  }
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(directory.length, 8);
  end.writeUInt16LE(directory.length, 10);
  end.writeUInt32LE(Buffer.concat(directory).length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...bodies, ...directory, end]);
}

/** Writes a zip archive; returns its path. */
export function zip(
  folder: string,
  name: string,
  files: Files,
  claims: Readonly<Record<string, Claims>> = {},
): string {
  return place(join(folder, name), zipBytes(files, claims));
}

/** Writes one file and the folders above it; returns its path. */
export function place(path: string, content: string | Buffer): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
}

/** Writes files as {@link writeFiles} does, bytes too. */
export function placeAll(folder: string, files: Files): void {
  for (const [name, content] of Object.entries(files)) place(join(folder, name), content);
}

/** A Python that behaves like the real one, but whose pip copies a wheel instead of fetching it. */
export function pythonWithWheel(folder: string, wheel: string, delay = 0): string {
  const file = join(folder, 'python');
  writeFiles(folder, {
    python:
      '#!/bin/sh\n' +
      'if [ "$2" = pip ] && [ "$3" = download ]; then\n' +
      '  while [ "$1" != --dest ]; do shift; done\n' +
      `  echo fetched >> '${folder}/fetched'; sleep ${delay}; exec cp '${wheel}' "$2"\n` +
      'fi\n' +
      `exec ${python} "$@"\n`,
  });
  spawnSync('chmod', ['755', file]);
  return file;
}

/** The cache's folder for the CPU build. */
export const entryIn = (cache: string): string => join(cache, `libtorch-${version}-cpu`);
