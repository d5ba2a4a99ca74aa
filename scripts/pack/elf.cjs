// Reads what the dynamic linker sees of a 64-bit little-endian ELF library: the libraries it needs, its
// symbols with their versions, its flags. Reads only the parts it uses: libtorch_cpu.so has 430 MB.
'use strict';
const { closeSync, fstatSync, openSync, readSync } = require('node:fs');

const machines = { 62: 'x64', 183: 'arm64' };
const section = {
  dynamic: 6,
  dynamicSymbols: 11,
  versionsDefined: 0x6ffffffd,
  versionsNeeded: 0x6ffffffe,
  symbolVersions: 0x6fffffff,
};
const tag = {
  needed: 1,
  rpath: 15,
  textRelocations: 22,
  runpath: 29,
  flags: 30,
  flags1: 0x6ffffffb,
};
const flag = { textRelocations: 4, now: 8 };
const flag1 = { now: 1, noDelete: 8 };

/**
 * @returns {{
 *   machine: string,
 *   needed: string[],
 *   searchPaths: string[],
 *   textRelocations: boolean,
 *   bindNow: boolean,
 *   noDelete: boolean,
 *   symbols: { name: string, defined: boolean, weak: boolean, version: string | null }[],
 * }}
 * @throws Error if `file` is not such a library
 */
function readElf(file) {
  const descriptor = openSync(file, 'r');
  try {
    const size = fstatSync(descriptor).size;
    const read = (offset, length) => {
      if (offset + length > size) throw new Error(`${file} is truncated: it ends at byte ${size}`);
      const buffer = Buffer.alloc(length);
      readSync(descriptor, buffer, 0, length, offset);
      return buffer;
    };
    return parse(file, read);
  } finally {
    closeSync(descriptor);
  }
}

function parse(file, read) {
  const header = read(0, 64);
  if (header.toString('latin1', 0, 4) !== '\x7fELF') throw new Error(`${file} is not an ELF file`);
  if (header[4] !== 2 || header[5] !== 1) throw new Error(`${file} is not 64-bit little-endian`);
  const sections = readSections(header, read);
  const content = (type) => {
    const found = sections.find((one) => one.type === type);
    return found === undefined ? null : { ...found, bytes: read(found.offset, found.size) };
  };
  const strings = (found) => {
    const { offset, size } = sections[found.link];
    const bytes = read(offset, size);
    return (at) => bytes.toString('latin1', at, bytes.indexOf(0, at));
  };

  const dynamic = content(section.dynamic);
  if (dynamic === null) throw new Error(`${file} is not a shared library`);
  const entries = readDynamic(dynamic.bytes);
  const dynamicString = strings(dynamic);
  const valuesOf = (wanted) => entries.filter(([key]) => key === wanted).map(([, value]) => value);
  const has = (wanted, bit) => valuesOf(wanted).some((value) => (value & bit) !== 0);
  return {
    machine: machines[header.readUInt16LE(18)] ?? `machine ${header.readUInt16LE(18)}`,
    needed: valuesOf(tag.needed).map(dynamicString),
    searchPaths: [...valuesOf(tag.rpath), ...valuesOf(tag.runpath)].map(dynamicString),
    textRelocations:
      valuesOf(tag.textRelocations).length > 0 || has(tag.flags, flag.textRelocations),
    bindNow: has(tag.flags, flag.now) || has(tag.flags1, flag1.now),
    noDelete: has(tag.flags1, flag1.noDelete),
    symbols: readSymbols(content, strings),
  };
}

function readSections(header, read) {
  const offset = Number(header.readBigUInt64LE(40));
  const entrySize = header.readUInt16LE(58);
  const count = header.readUInt16LE(60);
  const table = read(offset, entrySize * count);
  return Array.from({ length: count }, (_, index) => {
    const at = index * entrySize;
    return {
      type: table.readUInt32LE(at + 4),
      offset: Number(table.readBigUInt64LE(at + 24)),
      size: Number(table.readBigUInt64LE(at + 32)),
      link: table.readUInt32LE(at + 40),
    };
  });
}

function readDynamic(bytes) {
  const entries = [];
  for (let at = 0; at + 16 <= bytes.length; at += 16) {
    const key = Number(bytes.readBigUInt64LE(at));
    if (key === 0) break;
    entries.push([key, Number(bytes.readBigUInt64LE(at + 8))]);
  }
  return entries;
}

function readSymbols(content, strings) {
  const table = content(section.dynamicSymbols);
  if (table === null) return [];
  const nameAt = strings(table);
  const versions = content(section.symbolVersions)?.bytes;
  const names = versionNames(content, strings);
  const symbols = [];
  // The first entry is empty by definition.
  for (let index = 1; index * 24 < table.bytes.length; index += 1) {
    const at = index * 24;
    // The highest bit means "not the default version".
    const version = versions === undefined ? 1 : versions.readUInt16LE(index * 2) & 0x7fff;
    symbols.push({
      name: nameAt(table.bytes.readUInt32LE(at)),
      defined: table.bytes.readUInt16LE(at + 6) !== 0,
      weak: table.bytes[at + 4] >> 4 === 2,
      version: names.get(version) ?? null,
    });
  }
  return symbols;
}

/** Version number in the symbol table → version name. */
function versionNames(content, strings) {
  const names = new Map();
  const needed = content(section.versionsNeeded);
  if (needed !== null) {
    const nameAt = strings(needed);
    eachLinked(needed.bytes, 0, 12, (library) => {
      eachLinked(needed.bytes, library + needed.bytes.readUInt32LE(library + 8), 12, (at) => {
        names.set(needed.bytes.readUInt16LE(at + 6), nameAt(needed.bytes.readUInt32LE(at + 8)));
      });
    });
  }
  const defined = content(section.versionsDefined);
  if (defined !== null) {
    const nameAt = strings(defined);
    eachLinked(defined.bytes, 0, 16, (at) => {
      const first = at + defined.bytes.readUInt32LE(at + 12);
      // Number 1 is the file itself: symbols without a version.
      const number = defined.bytes.readUInt16LE(at + 4);
      if (number > 1) names.set(number, nameAt(defined.bytes.readUInt32LE(first)));
    });
  }
  return names;
}

/** Walks records whose field at `next` is the offset of the next record; zero ends the list. */
function eachLinked(bytes, start, next, visit) {
  for (let at = start; ;) {
    visit(at);
    const step = bytes.readUInt32LE(at + next);
    if (step === 0) return;
    at += step;
  }
}

module.exports = { readElf };
