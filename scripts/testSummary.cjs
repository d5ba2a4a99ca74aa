// testSummary.cjs <report.json> <exit code of the tests>: prints `N passed, N failed` from vitest's
// report. If there is no report, the tests never started, which counts as one failure.
'use strict';
const { readFileSync } = require('node:fs');

const [file, exitCode] = process.argv.slice(2);
let passed = 0;
let failed = 0;
try {
  const report = JSON.parse(readFileSync(file, 'utf8'));
  passed = report.numPassedTests;
  failed = report.numFailedTests;
  // A test file that fails to load has no failed tests.
  const broken = report.testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  );
  failed += broken.length;
} catch {
  // Counted below.
}
if (failed === 0 && exitCode !== '0') failed = 1;
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
