import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exampleFolder, runExample } from '../support/runExample.js';

let folder: string;
beforeAll(() => {
  folder = exampleFolder();
});
afterAll(() => rmSync(folder, { recursive: true }));

test('examples/loop.ts: a loop without Trainer learns all pairs', () => {
  const { status, output, errors } = runExample(folder, 'loop');
  expect([status, errors]).toEqual([0, '']);
  expect(output.match(/^epoch \d+ {2}loss \d\.\d{4}/gm)).toHaveLength(4);
  expect(output).toContain('80 of 80 are right');
}, 60_000);

test('examples/ownModule.ts: a model with a module of its own learns, is saved and loaded', () => {
  const { status, output } = runExample(folder, 'ownModule', join(folder, 'own'));
  expect(status).toBe(0);
  expect(output).toContain('encoder.layers.0.feed_forward.gate.weight');
  expect(output).toContain('80 of 80 are right');
}, 60_000);

test('examples/resume.ts: a run that is stopped twice ends as the one that is not', () => {
  const { status, output, errors } = runExample(folder, 'resume', join(folder, 'resume'));
  expect([status, errors]).toEqual([0, '']);
  expect(output).toBe(
    [
      'aborted after step 7',
      'aborted after step 25',
      'finished after step 40',
      'the same weights: true',
      'the same best validation: true',
      'averaged the models of steps 32, 36, 40',
      '',
    ].join('\n'),
  );
}, 60_000);
