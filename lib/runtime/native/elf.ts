/** Reads the headers of a shared library as the dynamic linker does, without loading it. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** A shared library or addon for Linux. */
export interface ElfFile {
  /** The processor it is for: `x86-64`, `aarch64`, … */
  readonly machine: string;
  /** The libraries that it depends on (DT_NEEDED). */
  readonly needed: readonly string[];
  /** Its DT_RPATH and DT_RUNPATH. */
  readonly runPaths: readonly string[];
  /** Whether its code must be relocated at load time (DT_TEXTREL). */
  readonly textRelocations: boolean;
  /** The required symbol versions by library: `libc.so.6` → `GLIBC_2.28`, … */
  readonly versionNeeds: ReadonlyMap<string, readonly string[]>;
}

const machines: Readonly<Record<number, string>> = {
  3: 'x86',
  21: 'ppc64',
  22: 's390x',
  40: 'arm',
  62: 'x86-64',
  183: 'aarch64',
  243: 'riscv',
  258: 'loongarch',
};

/** The machine that a library must be built for to be opened by this Node.js. */
export const ownMachine: string =
  { x64: 'x86-64', arm64: 'aarch64', ia32: 'x86' }[process.arch as string] ?? process.arch;

/**
 * Reads the headers and the dynamic section, and checks that everything they point to lies within
 * the file.
 *
 * @returns the file, or what is wrong with it: `is not a library: …`, `is truncated: …`
 */
export function readElf(path: string): ElfFile | string {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    return `cannot be read (${(error as NodeJS.ErrnoException).code})`;
  }
  try {
    return new ElfReader(file, fstatSync(file).size).read();
  } catch (error) {
    if (error instanceof ElfFault) return error.message;
    throw error;
  } finally {
    closeSync(file);
  }
}

class ElfFault extends Error {}

interface Segment {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly size: number;
}

const segmentTypes = { load: 1, dynamic: 2 };
const tags = {
  needed: 1,
  strings: 5,
  stringsSize: 10,
  rpath: 15,
  textRelocations: 22,
  runPath: 29,
  flags: 30,
  versionNeeds: 0x6ffffffe,
  versionNeedCount: 0x6fffffff,
};
const textRelocationFlag = 4;

class ElfReader {
  constructor(
    private readonly file: number,
    private readonly size: number,
  ) {}

  read(): ElfFile {
    if (this.size === 0) throw new ElfFault('is not a library: it is empty');
    const start = this.bytes(0, Math.min(this.size, 20));
    if (start.toString('latin1', 0, 4) !== '\x7fELF') {
      throw new ElfFault('is not a library: it does not start with the ELF signature');
    }
    if (this.size < 64) this.truncated('its header', 64);
    const littleEndian = start[5] === 1;
    const code = littleEndian ? start.readUInt16LE(18) : start.readUInt16BE(18);
    const machine = machines[code] ?? `machine ${code}`;
    if (!littleEndian || start[4] !== 2) {
      // No system with the 64-bit libraries of libtorch opens it; the caller compares the machine.
      const format = `${start[4] === 2 ? 64 : 32}-bit${littleEndian ? '' : ' big-endian'}`;
      return { ...nothing, machine: `${machine} (${format})` };
    }

    const header = this.bytes(0, 64);
    const sections = Number(header.readBigUInt64LE(40));
    const sectionsEnd = sections + header.readUInt16LE(58) * header.readUInt16LE(60);
    if (sectionsEnd > this.size) this.truncated('its section table', sectionsEnd);
    const segments = this.segments(
      Number(header.readBigUInt64LE(32)),
      header.readUInt16LE(54),
      header.readUInt16LE(56),
    );
    for (const { offset, size } of segments) {
      if (offset + size > this.size) this.truncated('a segment', offset + size);
    }
    return { ...this.dynamic(segments), machine };
  }

  private segments(start: number, entrySize: number, count: number): Segment[] {
    if (count > 0 && entrySize < 56)
      throw new ElfFault('is damaged: its program headers are too short');
    const table = this.bytes(start, entrySize * count, 'its program headers');
    return Array.from({ length: count }, (_, index) => {
      const at = index * entrySize;
      return {
        type: table.readUInt32LE(at),
        offset: Number(table.readBigUInt64LE(at + 8)),
        address: Number(table.readBigUInt64LE(at + 16)),
        size: Number(table.readBigUInt64LE(at + 32)),
      };
    });
  }

  private dynamic(segments: readonly Segment[]): Omit<ElfFile, 'machine'> {
    const dynamic = segments.find(({ type }) => type === segmentTypes.dynamic);
    if (dynamic === undefined) return nothing;
    const table = this.bytes(dynamic.offset, dynamic.size);
    const values = new Map<number, number[]>();
    for (let at = 0; at + 16 <= table.length; at += 16) {
      const tag = Number(table.readBigInt64LE(at));
      if (tag === 0) break;
      values.set(tag, [...(values.get(tag) ?? []), Number(table.readBigUInt64LE(at + 8))]);
    }
    const first = (tag: number): number => values.get(tag)?.[0] ?? 0;

    /** The position in the file of an address of the loaded library. */
    const inFile = (address: number): number => {
      const segment = segments.find(
        (one) =>
          one.type === segmentTypes.load &&
          address >= one.address &&
          address < one.address + one.size,
      );
      if (segment === undefined)
        throw new ElfFault('is damaged: its dynamic section points outside the file');
      return address - segment.address + segment.offset;
    };

    const stringsSize = first(tags.stringsSize);
    if (stringsSize === 0) return nothing;
    const strings = this.bytes(inFile(first(tags.strings)), stringsSize, 'its string table');
    const text = (at: number): string => {
      const end = strings.indexOf(0, at);
      return strings.toString('utf8', at, end < 0 ? strings.length : end);
    };
    const texts = (tag: number): string[] => (values.get(tag) ?? []).map(text);
    const needs = first(tags.versionNeeds);
    return {
      needed: texts(tags.needed),
      runPaths: [...texts(tags.rpath), ...texts(tags.runPath)],
      textRelocations:
        values.has(tags.textRelocations) || (first(tags.flags) & textRelocationFlag) !== 0,
      versionNeeds:
        needs === 0
          ? new Map()
          : this.versionNeeds(inFile(needs), first(tags.versionNeedCount), text),
    };
  }

  /** A list of libraries, each with a list of versions; both are linked by byte offsets. */
  private versionNeeds(
    start: number,
    count: number,
    text: (at: number) => string,
  ): Map<string, string[]> {
    const result = new Map<string, string[]>();
    let at = start;
    for (let index = 0; index < count; index++) {
      const library = this.bytes(at, 16, 'its version table');
      const versions: string[] = [];
      let versionAt = at + library.readUInt32LE(8);
      for (let left = library.readUInt16LE(2); left > 0; left--) {
        const version = this.bytes(versionAt, 16, 'its version table');
        versions.push(text(version.readUInt32LE(8)));
        versionAt += version.readUInt32LE(12);
      }
      const name = text(library.readUInt32LE(4));
      result.set(name, [...(result.get(name) ?? []), ...versions]);
      at += library.readUInt32LE(12);
    }
    return result;
  }

  private bytes(offset: number, length: number, what = 'its header'): Buffer {
    if (offset + length > this.size) this.truncated(what, offset + length);
    const buffer = Buffer.alloc(length);
    let done = 0;
    while (done < length) {
      const count = readSync(this.file, buffer, done, length - done, offset + done);
      if (count === 0) this.truncated(what, offset + length);
      done += count;
    }
    return buffer;
  }

  private truncated(what: string, end: number): never {
    throw new ElfFault(`is truncated: it has ${this.size} bytes, but ${what} ends at byte ${end}`);
  }
}

const nothing: Omit<ElfFile, 'machine'> = {
  needed: [],
  runPaths: [],
  textRelocations: false,
  versionNeeds: new Map(),
};

/**
 * The highest version of a family such as `GLIBC` or `GLIBCXX` that a file needs: `2.28`.
 * Null if it needs none. Names without a number (`GLIBC_PRIVATE`) are ignored.
 */
export function highestNeed(file: ElfFile, family: string): string | null {
  let highest: string | null = null;
  for (const version of [...file.versionNeeds.values()].flat()) {
    const match = /^(\w+)_(\d[\d.]*)$/.exec(version);
    if (match?.[1] !== family || match[2] === undefined) continue;
    if (highest === null || compareVersions(match[2], highest) > 0) highest = match[2];
  }
  return highest;
}

/** Negative, zero or positive, comparing dotted numbers: `2.9` comes before `2.28`. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number));
  for (let index = 0; index < Math.max(left?.length ?? 0, right?.length ?? 0); index++) {
    const difference = (left?.[index] ?? 0) - (right?.[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
