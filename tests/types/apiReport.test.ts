/** api/report.md: what it holds, and that it is up to date. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { differentLines } from '../../scripts/apiDifference.mjs';
import { apiFiles, apiReport, readSurface } from '../../scripts/apiSurface.mjs';
import { root } from '../process/support.js';

const report = readFileSync(join(root, 'api/report.md'), 'utf8');

const surface = readSurface();

it('the public API and the entry for require are what is in the repository', async () => {
  for (const [file, text] of await apiFiles()) {
    const lines = differentLines(readFileSync(join(root, file), 'utf8'), text);
    expect(lines.join('\n'), `${file} is not what lib/ exports: npm run api writes it`).toBe('');
  }
});

it('an export that goes is a difference that is shown line by line', () => {
  const exports = surface.exports.filter(({ name }) => name !== 'ModuleDict');
  const lines = differentLines(report, apiReport({ ...surface, exports }));
  expect(lines[0]).toMatch(/^- class ModuleDict</);
  expect(lines.every((line) => /^[-+]/.test(line))).toBe(true);
});

it('the report has no private members, no internal ones and no types of libtorch', () => {
  expect(report).toMatch(/class Scope \{\n {4}constructor\(\);\n {4}run</);
  expect(report).not.toMatch(/\bprivate\b|#\w+;|interface AtenOps/);
  expect(report).toContain('readonly aten: AtenOps;');
});

it('what the exports need, but do not export themselves, is in the report too', () => {
  const [, inner = ''] = report.split('## Used by these, not exported');
  expect(inner).toContain('abstract class ElementwiseMethods');
});
