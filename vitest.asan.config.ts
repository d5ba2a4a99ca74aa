import { defineConfig, mergeConfig } from 'vitest/config';
import ordinary from './vitest.config.js';

/** What cannot be told about the sanitized build, or is told as well without it. */
const left: Record<string, string> = {
  'tests/types/**': 'compiles declarations; no native code runs',
  'tests/install/**': 'is about the files of the ordinary build and the packages made of them',
  'tests/process/brokenInstallation.test.ts': 'breaks copies of the ordinary build on purpose',
  'tests/process/setup/*.test.ts': 'downloads and unpacks; no native code but the bootstrap runs',
  'tests/process/doctor.test.ts': 'tells about the ordinary build, its place and its symbols',
  'tests/process/load.test.ts': 'loads made-up libraries and copies of the ordinary build',
  'tests/process/interruptedSaves.test.ts':
    'kills processes that write files; no native code of ours',
  'tests/e2e/readme.test.ts': 'runs the blocks of the guides, which take minutes when instrumented',
  'tests/e2e/troubleshooting.test.ts': 'causes the faults that users have with the ordinary build',
  'tests/unit/native/copies.test.ts':
    'tells the copies of loops apart by fused sums, which the compiler makes from -O2 on only',
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
