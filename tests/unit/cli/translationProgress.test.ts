import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
// Internal: the command `translate` shows it.
import { sizeOfText, TranslationProgress } from '../../../dist/cli/translationProgress.js';

/** What is written, and a clock that moves a second at each reading. */
function screen(isTTY: boolean) {
  const written: string[] = [];
  let seconds = 0;
  const stream = { isTTY, write: (text: string) => written.push(text) };
  return { written, stream, now: () => 1000 * seconds++ };
}

test('lines, their part of the file and the time left are shown on a terminal', () => {
  const { written, stream, now } = screen(true);
  const progress = new TranslationProgress(40, stream, now);
  progress.add([{ text: 'nine char' }]);
  expect(written.join('')).toMatch(/1 line \(25 %\) {2}0:\d\d left/);
  progress.finish();
  expect(written.at(-1)).toBe('\r\u001b[K');
});

test('without a size, only the lines are shown', () => {
  const { written, stream, now } = screen(true);
  new TranslationProgress(null, stream, now).add([{ text: null }, { text: 'x' }]);
  expect(written.join('')).toContain('2 lines\u001b[K');
});

test('nothing is written elsewhere', () => {
  const { written, stream, now } = screen(false);
  const progress = new TranslationProgress(40, stream, now);
  progress.add([{ text: 'nine char' }]);
  progress.finish();
  expect(written).toEqual([]);
});

test('the size of a text is that of a file that is not compressed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'torchformer-size-'));
  const file = join(folder, 'a.txt');
  writeFileSync(file, 'four\n');
  expect(sizeOfText(file)).toBe(5);
  writeFileSync(file, gzipSync('four\n'));
  expect(sizeOfText(file)).toBeNull();
  expect(sizeOfText(folder)).toBeNull();
  expect(sizeOfText(join(folder, 'none'))).toBeNull();
  rmSync(folder, { recursive: true });
});
