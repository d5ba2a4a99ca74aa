import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const compiled = fileURLToPath(new URL('./dist/index.js', import.meta.url));
const compiledServer = fileURLToPath(new URL('./dist/serve/index.js', import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^torchformer$/, replacement: compiled },
      { find: /^torchformer\/serve$/, replacement: compiledServer },
    ],
  },
  test: {
    include: ['tests/**/*.test.ts'],
    // These need a GPU or Chromium: `npm run test:gpu` and `npm run test:browser` run them.
    exclude: ['node_modules/**', 'tests/gpu/**', 'tests/browser/**'],
    setupFiles: ['tests/support/tensorEquality.ts'],
    // One process per file: each loads the addon again, and none inherits another's random state.
    pool: 'forks',
    // One file at a time: two would compete for the cores that libtorch's threads use.
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Tests use the compiled package as it is shipped, loaded by Node.js itself.
    server: { deps: { external: [/\/dist\//] } },
  },
});
