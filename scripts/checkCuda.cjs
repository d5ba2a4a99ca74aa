// `npm run check:cuda [-- <folder with a CUDA build of libtorch>]`: tests the addon, which was built
// against the CPU libtorch, with the CUDA build, on a machine with or without a GPU. Without a folder, the
// CUDA build is downloaded to build/cuda-cache (3 GB). Prints one line per check; exit code 1 if one fails.
'use strict';
const { spawnSync } = require('node:child_process');
const { mkdirSync } = require('node:fs');
const path = require('node:path');
const { StepFailed, importCompiled, main, prepare, root, run, say } = require('./common.cjs');

const unavailable = 'ERR_CUDA_UNAVAILABLE';

main(async () => {
  await prepare();
  const [given] = process.argv.slice(2).filter((arg) => !arg.startsWith('--'));
  const libtorch = given === undefined ? await fetchedBuild() : path.resolve(given);
  const { ownPlatform } = await importCompiled('runtime/native/platform.js');
  const { bootstrap } = await importCompiled('runtime/native/load.js');
  const { inspectLibtorch } = await importCompiled('runtime/native/libtorchFolder.js');
  if (inspectLibtorch(libtorch).cuda !== true) {
    throw new StepFailed(`${libtorch} does not contain a CUDA build of libtorch`);
  }
  const { cudaDriver } = ownPlatform.libraries;
  const driver = cudaDriver !== null && bootstrap().opens(cudaDriver);
  say(`libtorch in ${libtorch}, ${driver ? 'an' : 'no'} NVIDIA driver`);

  await check('the addon needs no CUDA library', addonNeedsNoCuda);
  const environment = { ...process.env, TORCHFORMER_LIBTORCH: libtorch };
  delete environment.TORCHFORMER_CUDA;
  const reference = facts(environment, { TORCHFORMER_CUDA: '0' });
  for (const [title, settings, reason] of cases(driver)) {
    await check(`${title}: all calls return, the CPU computes, nothing is printed`, () => {
      judge(facts(environment, settings), reason, reference.losses);
    });
    await check(`${title}: doctor and doctor --json`, () => {
      judgeDoctor(environment, settings, reason);
    });
  }
  say(failures === 0 ? 'ok' : `${failures} of ${checks} checks failed`);
  if (failures > 0) process.exitCode = 1;
});

/**
 * Environments, each with the reason why there is no GPU; null: there is one. Broken drivers are
 * built here, even on a machine with a real driver.
 */
function cases(driver) {
  const fake = { LD_LIBRARY_PATH: fakeDriver() };
  const noGpu = driver ? null : /^no NVIDIA driver/;
  return [
    ['TORCHFORMER_CUDA=0', { TORCHFORMER_CUDA: '0' }, /^TORCHFORMER_CUDA=0$/],
    ['TORCHFORMER_CUDA unset', {}, noGpu],
    ['TORCHFORMER_CUDA=1', { TORCHFORMER_CUDA: '1' }, noGpu],
    [
      'a driver that is too old',
      { ...fake, FAKE_DRIVER_VERSION: '12040' },
      /^the NVIDIA driver of this system is too old for this libtorch \(it supports CUDA up to 12\.4\)/,
    ],
    [
      'a driver without a GPU',
      { ...fake, FAKE_DRIVER_VERSION: '13000', FAKE_DRIVER_START: '100' },
      /^the NVIDIA driver finds no GPU$/,
    ],
    [
      'a driver that does not start',
      { ...fake, FAKE_DRIVER_VERSION: '13000', FAKE_DRIVER_START: '999' },
      /^the NVIDIA driver does not start$/,
    ],
  ];
}

// ---- judging ------------------------------------------------------------------------------------

function judge(found, reason, losses) {
  equal(found.product, [[3], [7]], 'a product on the CPU');
  equal(found.losses, losses, 'the losses of two steps on the CPU');
  if (losses.length !== 2 || !losses.every(Number.isFinite)) fail(`losses ${losses}`);
  equal(found.precision, ['highest', 'high', 'highest'], 'the precision');
  equal(found.pinned, false, 'whether ordinary memory is pinned');
  equal(found.available, reason === null, 'isAvailable()');
  if (reason === null) {
    equal(found.auto, 'cuda:0', "the device of 'auto'");
    for (const [name, { code, message }] of Object.entries(found.calls)) {
      if (code !== undefined) fail(`${name}: ${code}: ${message}`);
    }
    return;
  }
  equal([found.devices, found.auto], [0, 'cpu'], "the count of GPUs and the device of 'auto'");
  if (!reason.test(found.reason)) fail(`the reason is "${found.reason}"`);
  for (const [name, { code, message }] of Object.entries(found.calls)) {
    equal(code, unavailable, `the code of ${name}`);
    if (!message.includes(`no CUDA GPU can be used here: ${found.reason}. `)) {
      fail(`${name} says "${message}"`);
    }
  }
}

function judgeDoctor(environment, settings, reason) {
  // Setting the variable to 1 requires a GPU.
  const healthy = reason === null || settings.TORCHFORMER_CUDA !== '1';
  const program = path.join(root, 'bin/torchformer.js');
  const text = start([program, 'doctor'], environment, settings);
  equal(text.status, healthy ? 0 : 1, 'the exit code of doctor');
  const json = start([program, 'doctor', '--json'], environment, settings);
  equal(json.status, text.status, 'the exit code of doctor --json');
  const report = JSON.parse(json.stdout);
  equal(report.cuda.available, reason === null, 'cuda.available');
  equal(report.cuda.kernelsProblem, null, 'the problem with our own CUDA kernels');
  if (reason !== null && !reason.test(report.cuda.reason)) {
    fail(`its reason is "${report.cuda.reason}"`);
  }
  const [cpu, ...gpus] = report.devices;
  equal(cpu, { device: 'cpu', works: true, problem: null }, 'the CPU of the report');
  equal(gpus.length > 0, reason === null, 'whether the report has GPUs');
  for (const gpu of gpus) equal(gpu.works, true, gpu.device);
  if (!text.stdout.includes(`: ${report.cuda.reason}\n`)) fail('the text has a different reason');
}

async function addonNeedsNoCuda() {
  const { findAddon } = await importCompiled('runtime/native/addonFiles.js');
  const { readElf } = await importCompiled('runtime/native/elf.js');
  const { needed } = readElf(findAddon().addon);
  const cuda = needed.filter((name) => /cuda|nv|cublas|cudnn/i.test(name));
  equal(cuda, [], 'the CUDA libraries among those needed');
}

let checks = 0;
let failures = 0;

async function check(title, action) {
  checks++;
  try {
    await action();
    say(`ok      ${title}`);
  } catch (error) {
    failures++;
    say(`FAILED  ${title}: ${error.message}`);
  }
}

function fail(what) {
  throw new Error(what);
}

function equal(got, wanted, what) {
  const [a, b] = [JSON.stringify(got), JSON.stringify(wanted)];
  if (a !== b) fail(`${what}: got ${a}, expected ${b}`);
}

// ---- running ------------------------------------------------------------------------------------

function facts(environment, settings) {
  const { status, signal, stdout, stderr } = start(
    [path.join(__dirname, 'cuda/facts.mjs')],
    environment,
    settings,
  );
  if (status !== 0) fail(`exited with ${signal ?? status}: ${stderr}`);
  if (stderr !== '') fail(`printed ${stderr}`);
  return JSON.parse(stdout);
}

function start(args, environment, settings) {
  const env = { ...environment, ...settings };
  return spawnSync(process.execPath, args, { cwd: root, env, encoding: 'utf8' });
}

/** Compiles cuda/fakeDriver.c; returns the folder of the library. */
function fakeDriver() {
  const folder = path.join(root, 'build/fake-driver');
  mkdirSync(folder, { recursive: true });
  const source = path.join(__dirname, 'cuda/fakeDriver.c');
  const library = path.join(folder, 'libcuda.so.1');
  const flags = ['-shared', '-fPIC', '-Wl,-soname,libcuda.so.1'];
  run(process.env.CC ?? 'cc', [...flags, '-o', library, source]);
  return folder;
}

async function fetchedBuild() {
  process.env.TORCHFORMER_CACHE = path.join(root, 'build/cuda-cache');
  const { setUpLibtorch } = await importCompiled('runtime/setup/setup.js');
  const { root: folder } = await setUpLibtorch({ variant: 'cuda', log: say });
  return folder;
}
