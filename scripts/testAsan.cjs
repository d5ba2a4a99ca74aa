// `npm run test:asan [-- files or vitest flags]`: builds native/ with AddressSanitizer and UBSan into
// build/asan, checks that they report a deliberate fault, and runs the tests with that build.
// libtorch itself is not instrumented. The sanitizers see everything that our own code reads and writes,
// and libtorch's calls of malloc, memcpy and similar functions on our behalf, but not a wrong address
// that one of libtorch's kernels reads. So our ops and the bridge are checked; ATen's kernels are not.
'use strict';
const { spawnSync } = require('node:child_process');
const { mkdirSync, readFileSync, readdirSync, realpathSync, rmSync } = require('node:fs');
const path = require('node:path');
const common = require('./common.cjs');
const { StepFailed, buildNative, compileTypeScript, ensureLibtorch, main, root, say } = common;

const folder = path.join(root, 'build/asan');
const reports = path.join(folder, 'reports');

main(async () => {
  if (process.platform !== 'linux') throw new StepFailed('test:asan works on Linux only');
  common.ensurePackages();
  compileTypeScript();
  await build(await ensureLibtorch());
  const environment = environmentFor();
  rmSync(reports, { recursive: true, force: true });
  mkdirSync(reports, { recursive: true });
  showThatFaultsAreReported(environment);

  const args = process.argv.slice(2);
  const vitest = [common.packageBinary('vitest'), 'run', '--config', 'vitest.asan.config.ts'];
  const { status } = spawnSync(process.execPath, [...vitest, ...args], {
    cwd: root,
    env: environment,
    stdio: 'inherit',
  });
  // A test may expect its child to fail, and mistake a sanitizer's exit for that: count every report.
  const found = faultsIn(reports);
  for (const report of found) process.stderr.write(`${report}\n`);
  if (found.length > 0) throw new StepFailed(`the sanitizers wrote reports to ${reports}`);
  if (status !== 0) throw new StepFailed(`tests under the sanitizers: exit code ${status}`);
  say('ok: the tests passed under AddressSanitizer and UBSan without a report');
});

/** The reports, without warnings about failed allocations, which tests cause deliberately. */
function faultsIn(folder) {
  const refused = /^==\d+==WARNING: AddressSanitizer failed to allocate 0x[\da-f]+ bytes\n/gm;
  return readdirSync(folder)
    .map((name) => readFileSync(path.join(folder, name), 'utf8').replace(refused, ''))
    .filter((report) => report.trim() !== '');
}

async function build(libtorch) {
  const flags = '-O1 -g1';
  await buildNative(libtorch, {
    folder: path.join(folder, 'objects'),
    buildType: 'RelWithDebInfo',
    definitions: [
      '-DTORCHFORMER_SANITIZE=ON',
      `-DTORCHFORMER_OUTPUT=${folder}`,
      `-DCMAKE_C_FLAGS_RELWITHDEBINFO=${flags}`,
      `-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=${flags}`,
    ],
    targets: ['torchformer', 'torchformer_bootstrap'],
  });
}

/** The compiler's own runtime library: its version must match the instrumented code. */
function runtimeLibrary(name) {
  const compiler = process.env.CXX || 'c++';
  const { stdout } = spawnSync(compiler, [`-print-file-name=${name}`], { encoding: 'utf8' });
  const file = (stdout ?? '').trim();
  if (!path.isAbsolute(file)) throw new StepFailed(`${compiler} has no ${name}`);
  return realpathSync(file);
}

function environmentFor() {
  const common = `log_path=${path.join(reports, 'report')}:print_stacktrace=1`;
  return {
    ...process.env,
    TORCHFORMER_ADDON: folder,
    // Node.js is not instrumented: AddressSanitizer must be loaded before anything allocates.
    LD_PRELOAD: runtimeLibrary('libasan.so'),
    ASAN_OPTIONS: [
      common,
      // V8, libtorch and our own registrations deliberately live until the process ends.
      'detect_leaks=0',
      // An allocation that is too large must fail, as with malloc: tests check that.
      'allocator_may_return_null=1',
      // Also detects a callback that reads the frame of a function that has returned.
      'detect_stack_use_after_return=1',
    ].join(':'),
    UBSAN_OPTIONS: common,
    // Freed blocks stay in the sanitizer's quarantine, and with huge pages each takes 2 MiB.
    THP_MEM_ALLOC_ENABLE: '0',
  };
}

const faults = [
  { call: 'readOutOfBounds(4)', report: /AddressSanitizer: heap-buffer-overflow/ },
  { call: 'overflow(1)', report: /runtime error: signed integer overflow/ },
];

/** The same calls within bounds must pass, so that what is reported is the fault. */
function showThatFaultsAreReported(environment) {
  const run = (call) => {
    const script = `import { native } from './dist/tensor/dispatch.js'; native().${call};`;
    return spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd: root,
      // This report is expected: write it to standard error, not to the files that fail the command.
      env: {
        ...environment,
        ASAN_OPTIONS: environment.ASAN_OPTIONS.replace(/log_path=[^:]*:/, ''),
        UBSAN_OPTIONS: environment.UBSAN_OPTIONS.replace(/log_path=[^:]*:/, ''),
      },
      encoding: 'utf8',
    });
  };
  for (const call of ['readOutOfBounds(3)', 'overflow(0)']) {
    const { status, stderr } = run(call);
    if (status !== 0)
      throw new StepFailed(`${call} is not a fault, but it failed with:\n${stderr}`);
  }
  for (const { call, report } of faults) {
    const { status, stderr } = run(call);
    if (status === 0 || !report.test(stderr) || !stderr.includes('deliberate_fault.cc')) {
      throw new StepFailed(
        `the deliberate fault ${call} was not reported; the output was:\n${stderr}`,
      );
    }
  }
  say('the sanitizers report the deliberate faults');
}
