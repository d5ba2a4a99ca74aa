import { defineConfig } from 'vitest/config';
import ordinary from '../../vitest.config.js';

// What needs a GPU; no part of `npm test`. `npm run test:gpu` starts it.
export default defineConfig({
  ...ordinary,
  test: { ...ordinary.test, include: ['tests/gpu/**/*.test.ts'], exclude: [] },
});
