// The rules for a native library of the package: it must load wherever libtorch loads, and need nothing
// else. `faultsOf` returns the violations.
'use strict';
const { readFileSync } = require('node:fs');
const path = require('node:path');
const { readElf } = require('./elf.cjs');

/**
 * The highest versions that libtorch 2.13.0 itself requires (its wheels are manylinux_2_28).
 *
 * @type {Readonly<Record<string, string>>}
 */
const floor = {
  GLIBC: '2.28',
  GLIBCXX: '3.4.22',
  CXXABI: '1.3.11',
  GCC: '7.0.0',
  GOMP: '4.5',
  OMP: '4.5',
};

/** Libraries that every such system has, and libtorch's own. */
const knownLibraries = [
  /^lib(torch_cpu|c10|gomp)\.so/,
  /^lib(stdc\+\+|gcc_s|m|c|dl|pthread|rt)\.so\.\d+$/,
  /^ld-linux-(x86-64|aarch64)\.so\.\d$/,
];

/** The library with CUDA kernels is opened after libtorch_cuda, which has loaded the CUDA runtime. */
const cudaKernels = /^(lib)?torchformer_cuda\b/;
const cudaLibraries = /^lib(cudart\.so\.\d+|torch_cuda\.so)$/;
/** Symbols that it needs from libtorch_cuda. Not checked, as a CPU build of libtorch lacks them. */
const cudaSymbol = /^_ZN2at4cuda/;

/** Symbols that Node.js exports to addons, at the Node-API version the addon is built for. */
const nodeSymbol = /^(napi|node_api)_/;

/**
 * @param {string} file a native library of ours
 * @param {object} options
 * @param {string} options.libtorch the folder with the libraries it is linked against
 * @param {string[]} [options.privateFolders] folders whose paths must not occur in the file
 * @returns {string[]} one line per fault, with the fix if it is known
 */
function faultsOf(file, { libtorch, privateFolders = [] }) {
  const elf = readElf(file);
  const isCuda = cudaKernels.test(path.basename(file));
  const mayNeed = (name) => isCuda && cudaLibraries.test(name);
  return [
    ...versionFaults(elf, mayNeed),
    ...symbolFaults(elf, libtorch).filter((fault) => !isCuda || !cudaSymbol.test(fault)),
    ...linkFaults(elf, mayNeed),
    ...pathFaults(file, privateFolders),
  ];
}

function versionFaults({ symbols }, mayNeed) {
  const faults = [];
  for (const { name, defined, version } of symbols) {
    // NVIDIA names the versions of its symbols after the library.
    if (defined || version === null || mayNeed(version)) continue;
    const [family, number] = version.split('_');
    const highest = floor[family];
    if (highest === undefined) faults.push(`${name} needs ${version}, from an unknown library`);
    else if (number === undefined || compare(number, highest) > 0) {
      faults.push(
        `${name} wants ${version}, and libtorch only ${family}_${highest}: ` +
          'add it to native/compat, or avoid it',
      );
    }
  }
  return faults;
}

/** A symbol that nothing defines is an error at load, or ends the process when it is called. */
function symbolFaults({ symbols }, libtorch) {
  const open = symbols.filter(
    ({ name, defined, weak, version }) =>
      !defined && !weak && version === null && !nodeSymbol.test(name),
  );
  if (open.length === 0) return [];
  const exported = new Set();
  for (const library of ['libtorch_cpu.so', 'libc10.so']) {
    for (const { name, defined } of readElf(path.join(libtorch, library)).symbols) {
      if (defined) exported.add(name);
    }
  }
  return open
    .filter(({ name }) => !exported.has(name))
    .map(({ name }) => `${name} is defined neither in libtorch nor in a library of the system`);
}

function linkFaults({ needed, searchPaths, textRelocations, bindNow, noDelete }, mayNeed) {
  const faults = needed
    .filter((name) => !mayNeed(name) && !knownLibraries.some((pattern) => pattern.test(name)))
    .map((name) => `it needs ${name}, which not every system has`);
  for (const folders of searchPaths) {
    faults.push(`it has the search path ${folders}: another libtorch could get in`);
  }
  if (textRelocations) faults.push('it has text relocations, which hardened systems reject');
  if (!bindNow) faults.push('it is not linked with -z now: a missing symbol would end the process');
  if (!noDelete)
    faults.push('it is not linked with -z nodelete: it would be unloaded with the last worker');
  return faults;
}

function pathFaults(file, privateFolders) {
  const bytes = readFileSync(file);
  return privateFolders
    .filter((folder) => bytes.includes(`${folder}/`))
    .map((folder) => `it contains the path ${folder} of this machine (-ffile-prefix-map)`);
}

/** Compares `2.28` and `2.2.5` part by part. */
function compare(a, b) {
  const left = a.split('.').map(Number);
  const right = b.split('.').map(Number);
  for (let index = 0; index < Math.max(left.length, right.length); index += 1) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

module.exports = { faultsOf, floor };
