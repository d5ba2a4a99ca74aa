// Puts together the folder of each package. What is in a folder is what gets packed.
'use strict';
const { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } = require('node:fs');
const path = require('node:path');
const { root, run, StepFailed } = require('../common.cjs');

/** An empty folder at `folder`. */
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
 * @param {string[]} files those that package.json lets into the package, by their paths
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

/** The compiler leaves what it made of a source file that is gone by now. */
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
    `# ${manifest.name}\n\nThe native addon of torchformer, built ahead. Install \`torchformer\`; it brings ` +
      'this package where it fits.\n',
  );
  writeManifest(folder, manifest);
}

/**
 * libtorch's libraries for the CPU, with the licences of all that is in them.
 *
 * @param {{ root: string, libraries: string, version: string | null }} libtorch
 */
function stageLibtorch(folder, libtorch, manifest) {
  freshFolder(folder);
  const lib = path.join(folder, 'lib');
  mkdirSync(lib);
  // What else a CUDA or Python build has is not needed: see CONTRIBUTING.md.
  const wanted = /^(lib)?(c10|torch_cpu|gomp[-.\w]*|iomp5\w*|omp)\.(so(\.\d+)*|dylib|dll)$/;
  for (const name of readdirSync(libtorch.libraries).filter((one) => wanted.test(one))) {
    cpSync(path.join(libtorch.libraries, name), path.join(lib, name), { dereference: true });
    stripSymbols(path.join(lib, name));
  }
  const licenses = path.join(libtorch.root, 'licenses');
  if (!existsSync(licenses)) {
    throw new StepFailed(
      `${licenses} is missing: libtorch is not packed without the licences of its wheel. ` +
        'Run `npx torchformer setup --cpu --force`.',
    );
  }
  cpSync(licenses, path.join(folder, 'licenses'), { recursive: true });
  for (const name of readdirSync(path.join(__dirname, 'licenses'))) {
    const target = name === 'LICENSE.md' ? name : path.join('licenses', name);
    cpSync(path.join(__dirname, 'licenses', name), path.join(folder, target));
  }
  // As in the official archives: what the loader reads the version from.
  writeFileSync(path.join(folder, 'build-version'), `${libtorch.version}\n`);
  writeManifest(folder, manifest);
}

/** Symbols that only debuggers want: a quarter of libtorch's size. */
function stripSymbols(file) {
  if (process.platform === 'linux') run('strip', ['--strip-unneeded', file]);
  else if (process.platform === 'darwin') run('strip', ['-x', file]);
}

module.exports = { stageAddon, stageLibtorch, stageMain };
