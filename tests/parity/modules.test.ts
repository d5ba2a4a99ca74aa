/** Outputs and gradients of every part of seed 001's model against PyTorch's. */
import { beforeAll, describe, it } from 'vitest';
import { tidy } from 'torchformer';
import { build } from './build.js';
import { compareCase, describeExact, modes, printedFigures, tolerances } from './compare.js';
import { index, readFixture } from './fixtures.js';
import type { Tensors } from './fixtures.js';

let fixtures: Tensors;
beforeAll(async () => {
  fixtures = await readFixture('modules');
});

const figures = printedFigures();
const names = new Set(index.modules.map(({ module }) => module));
describe.each([...names])('%s equals PyTorch', (name) => {
  for (const given of index.modules.filter(({ module }) => module === name)) {
    const { title, dtype } = given;
    it.each(modes)(`${title} (${dtype}, %s)`, (mode) => {
      tidy(() => {
        const subject = build(given, mode);
        const worst = compareCase(given, subject, fixtures, dtype, tolerances[dtype]);
        figures.add(`${name} ${dtype}`, worst);
      });
    });
  }
});

describeExact('bfloat16', build);
