// `bash .ci/run`: tests, lint, format, documentation and package, all of them even if one fails. Prints
// a line per step, and as the last line `N passed, N failed`: each test counts, and each other step.
'use strict';
const { spawnSync } = require('node:child_process');
const { readFileSync, rmSync } = require('node:fs');
const path = require('node:path');
const { root } = require('./common.cjs');

const report = path.join(root, 'build/test-report.json');

/** Runs `npm run <name>` and shows its output. */
function npmScript(name) {
  const begun = performance.now();
  const { status } = spawnSync('npm', ['run', '--silent', name], { cwd: root, stdio: 'inherit' });
  const seconds = Math.round((performance.now() - begun) / 1000);
  return { name, passed: status === 0, seconds };
}

/** Counts of the tests in vitest's report; without a report the tests never started: one failure. */
function testCounts(testsPassed) {
  let passed = 0;
  let failed = 0;
  try {
    const { numPassedTests, numFailedTests, testResults } = JSON.parse(
      readFileSync(report, 'utf8'),
    );
    // A test file that fails to load has no failed tests.
    const broken = testResults.filter(
      ({ status, assertionResults }) =>
        status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
    );
    passed = numPassedTests;
    failed = numFailedTests + broken.length;
  } catch {
    // Counted below.
  }
  if (failed === 0 && !testsPassed) failed = 1;
  return { passed, failed };
}

function print(line) {
  process.stdout.write(`${line}\n`);
}

rmSync(report, { force: true });
const tests = npmScript('test');
const others = ['lint', 'format:check', 'docs', 'check:package'].map(npmScript);
for (const { name, passed, seconds } of [tests, ...others]) {
  print(`${passed ? 'passed' : 'FAILED'}  ${name}, ${seconds} s`);
}
const counts = testCounts(tests.passed);
const passed = counts.passed + others.filter((step) => step.passed).length;
const failed = counts.failed + others.filter((step) => !step.passed).length;
print(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
