import { defineConfig } from 'vitest/config';
import ordinary from '../../vitest.config.js';

// What needs Chromium; no part of `npm test`. `npm run test:browser` starts it.
export default defineConfig({
  ...ordinary,
  test: { ...ordinary.test, include: ['tests/browser/**/*.test.ts'], exclude: [] },
});
