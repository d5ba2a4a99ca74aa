// Code shared by the scripts. Uses only Node's own modules, as it runs before anything is installed.
'use strict';
const { spawn, spawnSync } = require('node:child_process');
const {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const readline = require('node:readline');
const { pathToFileURL } = require('node:url');
const { BuildProgress } = require('./buildProgress.cjs');

const root = path.resolve(__dirname, '..');

class StepFailed extends Error {}

/** Prints one line of progress on standard error; standard output is for results. */
function say(line) {
  process.stderr.write(`[torchformer] ${line}\n`);
}

/** Runs a command and shows its output; throws StepFailed if it fails. */
function run(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2], ...options });
  if (result.error) throw notStarted(command, result.error);
  if (result.status !== 0) throw ended(command, args, result);
}

function notStarted(command, error) {
  return new StepFailed(
    error.code === 'ENOENT'
      ? `${command} was not found; see "Prerequisites" in README.md`
      : `${command}: ${error.message}`,
  );
}

function ended(command, args, { status, signal }) {
  const end = signal ? `signal ${signal}` : `exit code ${status}`;
  return new StepFailed(`${path.basename(command)} ${args.join(' ')}: ${end}`);
}

function runNode(args, options) {
  run(process.execPath, args, options);
}

/** The script in a package's `bin`, to run with this Node.js. */
function packageBinary(name, binary = name) {
  const folder = path.join(root, 'node_modules', name);
  const { bin } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  return path.join(folder, typeof bin === 'string' ? bin : bin[binary]);
}

// ---- npm packages -------------------------------------------------------------------------------

/** Whether node_modules matches package-lock.json, according to npm's own record. */
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
    // A missing optional package is one for another system.
    if (found === undefined) return Boolean(optional || devOptional);
    return found.version === version;
  });
}

function ensurePackages() {
  if (packagesAreCurrent()) return;
  say('installing npm packages (npm ci)');
  // npm provides its own path, which also works if `npm` is a shell function or a shim, not a program.
  const npm = process.env.npm_execpath;
  if (npm && npm.endsWith('.js')) runNode([npm, 'ci']);
  else run('npm', ['ci']);
}

// ---- TypeScript ---------------------------------------------------------------------------------

/** The page of `torchformer serve`, which is compiled for browsers. */
const pageSources = path.join(root, 'lib/serve/page');
const pageOutput = path.join(root, 'dist/serve/page');

/** The page of `report.html`, which is one script and one style. */
const reportSources = path.join(root, 'lib/train/report/page');
const reportScript = path.join(root, 'dist/train/report/page/report.js');

function reportIsOld() {
  if (!existsSync(reportScript)) return true;
  const made = statSync(reportScript).mtimeMs;
  const files = readdirSync(reportSources).map((name) => path.join(reportSources, name));
  files.push(path.join(root, 'scripts/bundleReport.mjs'));
  files.push(path.join(root, 'node_modules/uplot/package.json'));
  return files.some((file) => statSync(file).mtimeMs > made);
}

/** Compiles lib/ to dist/; takes under a second if nothing changed. */
function compileTypeScript() {
  const compile = (project, record) => {
    const args = ['-p', project, '--incremental', '--tsBuildInfoFile', record];
    runNode([packageBinary('typescript', 'tsc'), ...args]);
  };
  compile('tsconfig.json', 'dist/.tsbuildinfo');
  compile('lib/serve/page/tsconfig.json', 'dist/.tsbuildinfo-page');
  for (const name of ['index.html', 'page.css']) {
    copyFileSync(path.join(pageSources, name), path.join(pageOutput, name));
  }
  compile('lib/train/report/page/tsconfig.json', 'dist/.tsbuildinfo-report');
  if (reportIsOld()) runNode(['scripts/bundleReport.mjs']);
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

/** The libtorch to build and run with; downloads one if there is none. */
async function ensureLibtorch() {
  const { searchLibtorch, libtorchMissing } = await importCompiled(
    'runtime/native/findLibtorch.js',
  );
  const search = searchLibtorch({ headers: true });
  if (search.found) return search.found;
  // The user named a folder: do not replace it with another libtorch.
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
 * Configures if a relevant setting changed, then builds; takes 0.5 s if everything is up to date.
 *
 * @param folder for object files
 * @param buildType CMake's
 * @param definitions additional `-D…` arguments of the configuration
 * @param targets the targets to build; all if empty
 */
async function buildNative(
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
    // A CMake cache from another tree (the folder was moved or copied) cannot be used.
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
  await runBuild(args, settings.generator === 'Ninja' ? plannedSteps(folder, targets) : []);
}

const ninjaEnvironment = () => ({ ...process.env, NINJA_STATUS: '[%f/%t] ' });

/** What ninja would do, one line per step. */
function plannedSteps(folder, targets) {
  const args = ['-C', folder, '-n', ...targets];
  const { stdout } = spawnSync('ninja', args, { env: ninjaEnvironment(), encoding: 'utf8' });
  return (stdout ?? '').split('\n');
}

/**
 * `cmake --build` with messages of the compiler and the progress: one line that is rewritten on a
 * terminal, else a line every 15 seconds.
 */
async function runBuild(args, steps) {
  const begun = performance.now();
  const seconds = () => (performance.now() - begun) / 1000;
  const progress = new BuildProgress(steps);
  const isTerminal = process.stderr.isTTY === true;
  const clear = isTerminal ? '\r\x1b[K' : '';
  const show = () => {
    if (!progress.hasBegun) return;
    const line = `[torchformer] native build: ${progress.describe(seconds())}`;
    process.stderr.write(isTerminal ? clear + line : `${line}\n`);
  };
  const child = spawn('cmake', args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 2],
    env: ninjaEnvironment(),
  });
  const timer = setInterval(show, isTerminal ? 1000 : 15_000);
  try {
    const end = new Promise((resolve, reject) => {
      child.once('error', (error) => reject(notStarted('cmake', error)));
      child.once('close', (status, signal) => resolve({ status, signal }));
    });
    readline.createInterface({ input: child.stdout }).on('line', (line) => {
      if (progress.take(line, seconds())) process.stderr.write(`${clear}${line}\n`);
    });
    const result = await end;
    if (progress.hasBegun) process.stderr.write(clear);
    if (result.status !== 0) throw ended('cmake', args, result);
  } finally {
    clearInterval(timer);
  }
  if (progress.hasBegun) say(`native build: finished in ${Math.round(seconds())} s`);
}

function configure(folder, buildType, settings) {
  say(`configuring the native build for libtorch in ${settings.libtorch}`);
  // --fresh needs CMake 3.24; an old cache may name another generator or compiler.
  for (const part of ['CMakeCache.txt', 'CMakeFiles']) {
    require('node:fs').rmSync(path.join(folder, part), { recursive: true, force: true });
  }
  const args = ['-S', root, '-B', folder, `-DCMAKE_BUILD_TYPE=${buildType}`];
  args.push(...(settings.definitions ?? []));
  args.push(`-DTORCHFORMER_LIBTORCH=${settings.libtorch}`, `-DNODE_EXE=${settings.node}`);
  args.push('-G', settings.generator);
  run('cmake', args);
}

/** One compiler takes up to 1.1 GB with libtorch's headers. */
function buildJobs() {
  const byMemory = Math.floor(os.freemem() / 1.5e9);
  return Math.max(1, Math.min(os.availableParallelism(), byMemory));
}

function programExists(name) {
  return findProgram(name) !== null;
}

/** The path of a program that is in the PATH; else null. */
function findProgram(name) {
  const paths = (process.env.PATH ?? '')
    .split(path.delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => path.join(folder, name));
  const isFile = (file) => {
    try {
      return statSync(file).isFile();
    } catch {
      return false;
    }
  };
  return paths.find(isFile) ?? null;
}

// ---- everything ---------------------------------------------------------------------------------

/**
 * Turns a clean clone into a working package. Does only what is missing or out of date.
 *
 * @param all builds all libraries; else only what Node.js loads, and the CUDA kernels only where
 *   there is a GPU or `TORCHFORMER_CUDA=1` asks for one
 */
async function prepare({ all = true } = {}) {
  ensurePackages();
  compileTypeScript();
  const libtorch = await ensureLibtorch();
  const loaded = ['torchformer', 'torchformer_bootstrap'];
  await buildNative(libtorch, { targets: all || wantsGpu() ? [] : loaded });
  return libtorch;
}

function wantsGpu() {
  const wish = process.env.TORCHFORMER_CUDA;
  if (wish === '0' || wish === '1') return wish === '1';
  // The device files of the driver, natively and in WSL.
  return existsSync('/dev/nvidiactl') || existsSync('/dev/dxg');
}

/** Runs a script's main function; if a step fails, prints one line and sets exit code 1. */
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
  findProgram,
  importCompiled,
  main,
  packageBinary,
  prepare,
  root,
  run,
  runNode,
  say,
};
