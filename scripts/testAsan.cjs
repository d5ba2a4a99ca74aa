// `npm run test:asan [-- files or vitest flags]`: builds native/ with AddressSanitizer and UBSan into
// build/asan, shows that they report a fault made on purpose, and runs the tests with that build.
// libtorch itself is not instrumented. The sanitizers see all that our own code reads and writes, and
// what libtorch asks of malloc, memcpy and their kin on our behalf; a wrong address that one of
// libtorch's kernels reads goes unseen. So our ops and the bridge are checked, ATen's kernels are not.
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
  build(await ensureLibtorch());
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
  // A test may expect that a child fails, and take a sanitizer's end for it: each report counts.
  const found = faultsIn(reports);
  for (const report of found) process.stderr.write(`${report}\n`);
  if (found.length > 0) throw new StepFailed(`reports of the sanitizers in ${reports}`);
  if (status !== 0) throw new StepFailed(`tests under the sanitizers: exit code ${status}`);
  say('fine: the tests passed under AddressSanitizer and UBSan without a report');
});

/** The reports, without what is told of allocations that are refused, as tests want them to be. */
function faultsIn(folder) {
  const refused = /^==\d+==WARNING: AddressSanitizer failed to allocate 0x[\da-f]+ bytes\n/gm;
  return readdirSync(folder)
    .map((name) => readFileSync(path.join(folder, name), 'utf8').replace(refused, ''))
    .filter((report) => report.trim() !== '');
}

function build(libtorch) {
  const flags = '-O1 -g1';
  buildNative(libtorch, {
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

/** The compiler's own runtime library: its version has to be that of the instrumented code. */
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
    // Node is not instrumented: AddressSanitizer has to be there before anything allocates.
    LD_PRELOAD: runtimeLibrary('libasan.so'),
    ASAN_OPTIONS: [
      common,
      // V8, libtorch and our own registrations live until the process ends, on purpose.
      'detect_leaks=0',
      // An allocation that is too large has to fail, as malloc does: tests try that.
      'allocator_may_return_null=1',
      // Also what a callback reads from the frame of a function that has returned.
      'detect_stack_use_after_return=1',
    ].join(':'),
    UBSAN_OPTIONS: common,
    // A freed block waits in the sanitizer's quarantine, and with huge pages each takes 2 MiB.
    THP_MEM_ALLOC_ENABLE: '0',
  };
}

const faults = [
  { call: 'readOutOfBounds(4)', report: /AddressSanitizer: heap-buffer-overflow/ },
  { call: 'overflow(1)', report: /runtime error: signed integer overflow/ },
];

/** The same calls within bounds pass, so that it is the fault that is reported. */
function showThatFaultsAreReported(environment) {
  const run = (call) => {
    const script = `import { native } from './dist/tensor/dispatch.js'; native().${call};`;
    return spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd: root,
      // Here the report is wanted: on standard error, not among those that fail the command.
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
    if (status !== 0) throw new StepFailed(`${call} is no fault, yet it ended with:\n${stderr}`);
  }
  for (const { call, report } of faults) {
    const { status, stderr } = run(call);
    if (status === 0 || !report.test(stderr) || !stderr.includes('deliberate_fault.cc')) {
      throw new StepFailed(`the deliberate fault ${call} was not reported; it gave:\n${stderr}`);
    }
  }
  say('the sanitizers report the faults made on purpose');
}
