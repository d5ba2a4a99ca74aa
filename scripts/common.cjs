// What the scripts share. Only Node's own modules: these run before anything is installed.
'use strict';
const { spawnSync } = require('node:child_process');
const { existsSync, readFileSync, statSync, writeFileSync } = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { pathToFileURL } = require('node:url');

const root = path.resolve(__dirname, '..');

class StepFailed extends Error {}

/** Prints one line of progress, on standard error: standard output belongs to the results. */
function say(line) {
  process.stderr.write(`[torchformer] ${line}\n`);
}

/** Runs a command with the output shown; ends this script when it fails. */
function run(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2], ...options });
  if (result.error) {
    throw new StepFailed(
      result.error.code === 'ENOENT'
        ? `${command} was not found; see "Prerequisites" in README.md`
        : `${command}: ${result.error.message}`,
    );
  }
  if (result.status !== 0) {
    const end = result.signal ? `signal ${result.signal}` : `exit code ${result.status}`;
    throw new StepFailed(`${path.basename(command)} ${args.join(' ')}: ${end}`);
  }
}

function runNode(args, options) {
  run(process.execPath, args, options);
}

/** The script in a package's `bin`, to run with this Node. */
function packageBinary(name, binary = name) {
  const folder = path.join(root, 'node_modules', name);
  const { bin } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  return path.join(folder, typeof bin === 'string' ? bin : bin[binary]);
}

// ---- npm packages -------------------------------------------------------------------------------

/** Whether node_modules holds what package-lock.json says, by npm's own record of it. */
function packagesAreCurrent() {
  let installed;
  try {
    installed = JSON.parse(
      readFileSync(path.join(root, 'node_modules/.package-lock.json'), 'utf8'),
    );
  } catch {
    return false;
  }
  const wanted = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')).packages;
  return Object.entries(wanted).every(([folder, { version, optional, devOptional }]) => {
    if (folder === '') return true;
    const found = installed.packages[folder];
    // Optional ones belong to other systems when they are not there.
    if (found === undefined) return Boolean(optional || devOptional);
    return found.version === version;
  });
}

function ensurePackages() {
  if (packagesAreCurrent()) return;
  say('installing npm packages (npm ci)');
  // npm tells its own path, which works where `npm` is no program but a shell function or a shim.
  const npm = process.env.npm_execpath;
  if (npm && npm.endsWith('.js')) runNode([npm, 'ci']);
  else run('npm', ['ci']);
}

// ---- TypeScript ---------------------------------------------------------------------------------

/** Compiles lib/ to dist/; takes under a second when nothing changed. */
function compileTypeScript() {
  const args = ['-p', 'tsconfig.json', '--incremental', '--tsBuildInfoFile', 'dist/.tsbuildinfo'];
  runNode([packageBinary('typescript', 'tsc'), ...args]);
}

/** Compiles examples/ to build/examples/. */
function compileExamples() {
  runNode([packageBinary('typescript', 'tsc'), '-p', 'examples/tsconfig.json']);
}

/** A module of the compiled package, e.g. `runtime/native/findLibtorch.js`. */
function importCompiled(file) {
  return import(pathToFileURL(path.join(root, 'dist', file)).href);
}

// ---- libtorch -----------------------------------------------------------------------------------

/** The libtorch to build and run with; set-up fetches one when there is none. */
async function ensureLibtorch() {
  const { searchLibtorch, libtorchMissing } = await importCompiled(
    'runtime/native/findLibtorch.js',
  );
  const search = searchLibtorch({ headers: true });
  if (search.found) return search.found;
  // A folder that the user named is a wish; do not go behind it.
  if (process.env.TORCHFORMER_LIBTORCH || process.env.LIBTORCH) {
    const { libtorchVersion } = await importCompiled('runtime/package.js');
    throw new StepFailed(libtorchMissing(search, libtorchVersion).message);
  }
  const { setUpLibtorch } = await importCompiled('runtime/setup/setup.js');
  await setUpLibtorch({ headers: true, log: say });
  return ensureLibtorchIsThere();
}

async function ensureLibtorchIsThere() {
  const { findLibtorch } = await importCompiled('runtime/native/findLibtorch.js');
  return findLibtorch({ headers: true });
}

// ---- native code --------------------------------------------------------------------------------

/**
 * Configures when something that matters changed, then builds; 0.5 s when all is current.
 *
 * @param folder for object files
 * @param buildType CMake's
 * @param definitions more arguments of the configuration, `-D…`
 * @param targets what to build; all when empty
 */
function buildNative(
  libtorch,
  {
    folder = path.join(root, 'build-native'),
    buildType = 'Release',
    definitions,
    targets = [],
  } = {},
) {
  const recordFile = path.join(folder, 'torchformer-configure.json');
  const settings = {
    libtorch: libtorch.root,
    // Another tree's CMake cache (the folder was moved or copied) cannot be used.
    root,
    node: process.execPath,
    generator: process.env.CMAKE_GENERATOR ?? (programExists('ninja') ? 'Ninja' : 'Unix Makefiles'),
    environment: [process.env.CC ?? '', process.env.CXX ?? '', process.env.CXXFLAGS ?? ''],
    definitions,
  };
  const wanted = JSON.stringify(settings);
  if (!existsSync(recordFile) || readFileSync(recordFile, 'utf8') !== wanted) {
    configure(folder, buildType, settings);
    writeFileSync(recordFile, wanted);
  }
  const args = ['--build', folder, '--config', buildType, '--parallel', String(buildJobs())];
  for (const target of targets) args.push('--target', target);
  run('cmake', args);
}

function configure(folder, buildType, settings) {
  say(`configuring the native build for libtorch in ${settings.libtorch}`);
  // --fresh came only with CMake 3.24; an old cache may name another generator or compiler.
  for (const part of ['CMakeCache.txt', 'CMakeFiles']) {
    require('node:fs').rmSync(path.join(folder, part), { recursive: true, force: true });
  }
  const args = ['-S', root, '-B', folder, `-DCMAKE_BUILD_TYPE=${buildType}`];
  args.push(...(settings.definitions ?? []));
  args.push(`-DTORCHFORMER_LIBTORCH=${settings.libtorch}`, `-DNODE_EXE=${settings.node}`);
  args.push('-G', settings.generator);
  run('cmake', args);
}

/** One compiler takes up to 1.3 GB with libtorch's headers. */
function buildJobs() {
  const byMemory = Math.floor(os.freemem() / 1.5e9);
  return Math.max(1, Math.min(os.availableParallelism(), byMemory));
}

function programExists(name) {
  return (process.env.PATH ?? '').split(path.delimiter).some((folder) => {
    try {
      return folder !== '' && statSync(path.join(folder, name)).isFile();
    } catch {
      return false;
    }
  });
}

// ---- all of it ----------------------------------------------------------------------------------

/** From a clean clone to a package that runs. Does only what is missing or out of date. */
async function prepare() {
  ensurePackages();
  compileTypeScript();
  const libtorch = await ensureLibtorch();
  buildNative(libtorch);
  return libtorch;
}

/** Runs a script's main function; a failed step ends it with one line and exit code 1. */
function main(action) {
  action().catch((error) => {
    const expected = error instanceof StepFailed || typeof error.code === 'string';
    say(expected && !process.env.TORCHFORMER_DEBUG ? `failed: ${error.message}` : error.stack);
    process.exitCode = 1;
  });
}

module.exports = {
  StepFailed,
  buildNative,
  compileExamples,
  compileTypeScript,
  ensureLibtorch,
  ensurePackages,
  importCompiled,
  main,
  packageBinary,
  prepare,
  root,
  run,
  runNode,
  say,
};
