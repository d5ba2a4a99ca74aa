import { describe, expect, test } from 'vitest';
import { ProgressBar, type StepEvent } from 'torchformer';
import { epochOf } from './report/trainingEvents.js';

describe('the progress', () => {
  const recorder = (terminal: boolean) => {
    let written = '';
    const clock = { now: 0 };
    const stream = {
      isTTY: terminal,
      columns: 120,
      write: (text: string) => {
        written += text;
      },
    };
    return { bar: new ProgressBar(stream, () => clock.now), clock, text: () => written };
  };
  const start = {
    step: 0,
    epoch: 0,
    seconds: 0,
    epochs: 2,
    steps: Infinity,
    parameters: 1,
    out: null,
  };
  /** The event of one step with one batch of 100 tokens. */
  const step = (number: number, batches: number | null = 10, epoch = 1): StepEvent => ({
    step: number,
    epoch,
    batch: number,
    batches,
    loss: 3,
    epochLoss: 2.5,
    tokens: 100,
    epochTokens: number * 100,
    learningRate: 0.1,
    gradientNorm: 1,
    seconds: 0,
  });

  test('on a terminal is one line that is rewritten, with loss, speed and time left', () => {
    const { bar, clock, text } = recorder(true);
    bar.start(start);
    for (const number of [1, 2]) {
      clock.now = number * 1000;
      bar.step(step(number));
    }
    // 2 of 20 batches took 2 seconds, so 18 are left; 200 tokens in 2 seconds.
    expect(text().split('\r').at(-1)).toMatch(
      /^epoch 1\/2 \[#####\.*\] 2\/10 {2}loss 2\.5000 {2}100 tokens\/s {2}0:18 left/,
    );
    expect(text()).not.toContain('\n');
  });

  test('on a terminal is rewritten at most ten times a second', () => {
    const { bar, clock, text } = recorder(true);
    for (let number = 1; number <= 9; number++) {
      clock.now = 1000 + number;
      bar.step(step(number));
    }
    expect(text().match(/\r/g)).toHaveLength(1);
  });

  test('on a narrow terminal never wraps', () => {
    let written = '';
    const bar = new ProgressBar(
      { isTTY: true, columns: 20, write: (text) => (written = text) },
      () => performance.now() + 1e6,
    );
    bar.step(step(10));
    expect(written.replace(/[\r]|\u001b\[K/g, '').length).toBeLessThan(20);
  });

  test('on a terminal of 80 columns has a shorter bar, and all its figures', () => {
    let written = '';
    const stream = { isTTY: true, columns: 80, write: (text: string) => (written = text) };
    let now = 0;
    const bar = new ProgressBar(stream, () => (now += 1000));
    bar.start(start);
    bar.step({ ...step(10), epochTokens: 123_456_789, epoch: 2 });
    expect(written).toMatch(/ \[#{4,23}\] 10\/10 .*0:00 left/);
  });

  test('elsewhere is a line every 30 seconds', () => {
    const { bar, clock, text } = recorder(false);
    bar.start(start);
    for (let number = 1; number <= 10; number++) {
      clock.now = number * 10_000;
      bar.step(step(number));
    }
    expect(text().trimEnd().split('\n')).toHaveLength(3);
    expect(text()).not.toContain('\r');
    expect(text()).toContain('epoch 1/2 3/10  loss 2.5000  10 tokens/s  2:50 left');
  });

  test('of an unknown number of batches has no time left', () => {
    const { bar, clock, text } = recorder(true);
    bar.start(start);
    clock.now = 5000;
    bar.step(step(3, null));
    expect(text()).toContain('epoch 1/2 3  loss');
    expect(text()).not.toContain('left');
  });

  test('ends an epoch with a line of its means', () => {
    const { bar, text } = recorder(false);
    bar.start({ ...start, epochs: 3 });
    bar.epoch(epochOf(1, 10, 1.5, 1.25));
    bar.epoch({ ...epochOf(2, 20, 1.5, null), best: false });
    expect(text()).toBe(
      'epoch 1/3  train 1.5000  validation 1.2500 (best)  500 tokens/s  0:03\n' +
        'epoch 2/3  train 1.5000  500 tokens/s  0:03\n',
    );
  });

  test('clears its line before a message and at the end', () => {
    const { bar, clock, text } = recorder(true);
    clock.now = 1000;
    bar.step(step(1));
    bar.message('a warning');
    expect(text()).toMatch(/\r\u001b\[Ka warning\n$/);
  });
});
