import { expect, test } from 'vitest';
import { commandWording } from '../../../dist/cli/wording.js';

test('what to change when a run does not fit is said in flags', () => {
  const message =
    'estimateTraining: training needs 2.0 GB of memory (weights 2.0), but 1.0 GB are available; choose ' +
    'batches of fewer tokens with a larger accumulate, the optimizer Adafactor or a smaller model';
  expect(commandWording(message)).toBe(
    'training needs 2.0 GB of memory (weights 2.0), but 1.0 GB are available; choose ' +
      'a smaller --batch-tokens with a larger --accumulate, --optimizer adafactor or a smaller model',
  );
});
