// Assembles the folder of each package. Everything in the folder is packed.
'use strict';
const { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } = require('node:fs');
const path = require('node:path');
const { root, run, StepFailed } = require('../common.cjs');

/** Creates `folder`, or empties it. */
function freshFolder(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
}

function writeManifest(folder, manifest) {
  writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

/**
 * The main package.
 *
 * @param {string[]} files paths of the files that package.json includes in the package
 */
function stageMain(folder, files, manifest) {
  freshFolder(folder);
  for (const file of files) {
    if (file !== 'package.json' && !isLeftOver(file)) {
      cpSync(path.join(root, file), path.join(folder, file));
    }
  }
  writeManifest(folder, manifest);
}

/** Whether a compiled file's source no longer exists: the compiler does not remove its output. */
function isLeftOver(file) {
  const compiled = /^dist\/(.*?)(?:\.d)?\.([cm]?)[jt]s(?:\.map)?$/.exec(file);
  if (compiled === null) return false;
  return !existsSync(path.join(root, 'lib', `${compiled[1]}.${compiled[2]}ts`));
}

/** The addon, its bootstrap, and the library with the CUDA kernels where one was built. */
function stageAddon(folder, build, manifest) {
  freshFolder(folder);
  const wanted = ['torchformer.node', 'torchformer_bootstrap.node'];
  const cuda = readdirSync(build).filter((name) => /^(lib)?torchformer_cuda\./.test(name));
  for (const name of [...wanted, ...cuda]) {
    if (!existsSync(path.join(build, name))) {
      throw new StepFailed(`${path.join(build, name)} is missing; run \`npm run build\``);
    }
    cpSync(path.join(build, name), path.join(folder, name));
    stripSymbols(path.join(folder, name));
  }
  cpSync(path.join(root, 'LICENSE'), path.join(folder, 'LICENSE'));
  writeFileSync(
    path.join(folder, 'README.md'),
    `# ${manifest.name}\n\nThe native addon of torchformer, prebuilt. Install \`torchformer\`, which installs ` +
      'this package on the platform it is for.\n',
  );
  writeManifest(folder, manifest);
}

/**
 * libtorch's libraries for the CPU, with the licenses of everything in them.
 *
 * @param {{ root: string, libraries: string, version: string | null }} libtorch
 */
function stageLibtorch(folder, libtorch, manifest) {
  freshFolder(folder);
  const lib = path.join(folder, 'lib');
  mkdirSync(lib);
  // The other libraries of a CUDA or Python build are not needed: see CONTRIBUTING.md.
  const wanted = /^(lib)?(c10|torch_cpu|gomp[-.\w]*|iomp5\w*|omp)\.(so(\.\d+)*|dylib|dll)$/;
  for (const name of readdirSync(libtorch.libraries).filter((one) => wanted.test(one))) {
    cpSync(path.join(libtorch.libraries, name), path.join(lib, name), { dereference: true });
    stripSymbols(path.join(lib, name));
  }
  const licenses = path.join(libtorch.root, 'licenses');
  if (!existsSync(licenses)) {
    throw new StepFailed(
      `${licenses} is missing: libtorch is not packed without the licenses of its wheel. ` +
        'Run `npx torchformer setup --cpu --force`.',
    );
  }
  cpSync(licenses, path.join(folder, 'licenses'), { recursive: true });
  for (const name of readdirSync(path.join(__dirname, 'licenses'))) {
    const target = name === 'LICENSE.md' ? name : path.join('licenses', name);
    cpSync(path.join(__dirname, 'licenses', name), path.join(folder, target));
  }
  // As in the official archives: the loader reads the version from it.
  writeFileSync(path.join(folder, 'build-version'), `${libtorch.version}\n`);
  writeManifest(folder, manifest);
}

/** Removes symbols that only debuggers use: a quarter of libtorch's size. */
function stripSymbols(file) {
  if (process.platform === 'linux') run('strip', ['--strip-unneeded', file]);
  else if (process.platform === 'darwin') run('strip', ['-x', file]);
}

module.exports = { stageAddon, stageLibtorch, stageMain };
