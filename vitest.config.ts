import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const compiled = fileURLToPath(new URL('./dist/index.js', import.meta.url));

export default defineConfig({
  resolve: { alias: [{ find: /^torchformer$/, replacement: compiled }] },
  test: {
    include: ['tests/**/*.test.ts'],
    // A GPU is no part of the usual machine: `npm run test:gpu`.
    exclude: ['node_modules/**', 'tests/gpu/**'],
    setupFiles: ['tests/support/tensorEquality.ts'],
    // A process a file: each loads the addon anew, and none inherits another's random state.
    pool: 'forks',
    // One file at a time: two would fight for the cores that libtorch's threads use.
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // What is tested is what is shipped, loaded by Node itself.
    server: { deps: { external: [/\/dist\//] } },
  },
});
