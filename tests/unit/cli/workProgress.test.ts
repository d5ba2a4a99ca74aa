import { expect, test } from 'vitest';
// Internal: the command shows with it how far it is.
import { WorkProgress } from '../../../dist/cli/workProgress.js';

function progressOn(isTTY: boolean) {
  let clock = 0;
  let written = '';
  const stream = { isTTY, columns: 60, write: (text: string) => (written += text) };
  return {
    progress: new WorkProgress(stream, () => clock),
    wait: (milliseconds: number) => (clock += milliseconds),
    taken: () => {
      const text = written;
      written = '';
      return text;
    },
  };
}

test('a log gets a line every 30 seconds, with the time left', () => {
  const { progress, wait, taken } = progressOn(false);
  progress.update('encoding pairs', 1024, 3_000_000);
  wait(29_999);
  progress.update('encoding pairs', 500_000, 3_000_000);
  expect(taken()).toBe('');
  wait(1);
  progress.update('encoding pairs', 1_000_000, 3_000_000);
  expect(taken()).toBe('encoding pairs 1,000,000/3,000,000  1:00 left\n');
  progress.finish();
  expect(taken()).toBe('');
});

test('a terminal gets one line that is rewritten, and removed at the end', () => {
  const { progress, wait, taken } = progressOn(true);
  progress.update('counting', 0, 100);
  wait(1000);
  progress.update('counting', 50, 100);
  expect(taken()).toBe('\rcounting 50/100  0:01 left\u001b[K');
  wait(50);
  progress.update('counting', 60, 100);
  expect(taken()).toBe('');
  wait(100);
  // Other work has a time of its own.
  progress.update('merging', 10, 100);
  expect(taken()).toBe('\rmerging 10/100\u001b[K');
  progress.finish();
  expect(taken()).toBe('\r\u001b[K');
});
