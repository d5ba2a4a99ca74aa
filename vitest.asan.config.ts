import { defineConfig, mergeConfig } from 'vitest/config';
import ordinary from './vitest.config.js';

/** Tests that do not apply to the sanitized build, or gain nothing from it, each with the reason. */
const left: Record<string, string> = {
  'tests/types/**': 'compiles declarations; no native code runs',
  'tests/install/**': 'checks the files of the ordinary build and the packages made from them',
  'tests/process/brokenInstallation.test.ts': 'breaks copies of the ordinary build deliberately',
  'tests/process/setup/*.test.ts':
    'downloads and unpacks; the only native code that runs is the bootstrap',
  'tests/process/doctor.test.ts': 'reports the ordinary build, its location and its symbols',
  'tests/process/load.test.ts': 'loads made-up libraries and copies of the ordinary build',
  'tests/process/interruptedSaves.test.ts':
    'kills processes that write files; runs none of our native code',
  'tests/e2e/readme.test.ts':
    'runs the examples of the guides, which take minutes when instrumented',
  'tests/e2e/troubleshooting.test.ts': 'triggers the errors that users see with the ordinary build',
  'tests/unit/native/copies.test.ts':
    'distinguishes the copies of loops by fused sums, which the compiler only makes from -O2 on',
  'tests/leak/**': 'measures memory, which the quarantine of freed blocks distorts',
};

// `npm run test:asan` sets the environment that this needs.
export default mergeConfig(
  ordinary,
  defineConfig({
    test: {
      setupFiles: ['tests/sanitized/setup.ts'],
      exclude: ['node_modules/**', ...Object.keys(left)],
      // Instrumented code takes several times as long.
      testTimeout: 600_000,
      hookTimeout: 600_000,
    },
  }),
);
