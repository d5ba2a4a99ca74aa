import { describe, expect, test } from 'vitest';
import {
  lossCurve,
  ProgressBar,
  type EpochRecord,
  type History,
  type StepEvent,
} from 'torchformer';

const epoch = (
  number: number,
  step: number,
  train: number,
  validation: number | null,
): EpochRecord => ({
  epoch: number,
  step,
  trainLoss: train,
  validationLoss: validation,
  trainTokens: 1000,
  validationTokens: 100,
  trainSeconds: 2,
  validationSeconds: 1,
  skippedBatches: 0,
  skippedSteps: 0,
  best: true,
});

const historyOf = (losses: number[], epochs: EpochRecord[]): History => ({
  steps: losses.map((loss, index) => ({
    step: index + 1,
    epoch: 1,
    loss,
    tokens: 10,
    learningRate: 0.1,
    gradientNorm: 1,
    seconds: index,
  })),
  validationBatches: [],
  validations: [],
  epochs,
});

/** The curves' path data, in the order step, train, validation. */
const curvesOf = (svg: string) =>
  [...svg.matchAll(/<path d="([^"]*)"[^>]*stroke-linejoin/g)].map(([, d]) => d ?? '');

describe('the loss picture', () => {
  const svg = lossCurve(historyOf([4, 3, 2, 1], [epoch(1, 2, 3.5, 3), epoch(2, 4, 1.5, 2)]));

  test('has a curve of the steps, of the training means and of the validation means', () => {
    const [steps, train, validation] = curvesOf(svg);
    expect(steps?.match(/[ML]/g)).toHaveLength(4);
    expect(train?.match(/[ML]/g)).toHaveLength(2);
    expect(validation?.match(/[ML]/g)).toHaveLength(2);
    expect(svg.match(/<circle/g)).toHaveLength(4);
  });

  test('has axes with numbers, their names and a legend', () => {
    for (const text of [
      '>step<',
      '>loss per target token<',
      '>train, each step<',
      '>validation, epoch mean<',
      '>4<',
      '>1<',
    ]) {
      expect(svg).toContain(text);
    }
  });

  test('draws a lower loss further down and a later step further right', () => {
    const points = [...(curvesOf(svg)[0] ?? '').matchAll(/[ML]([\d.]+) ([\d.]+)/g)].map(
      ([, x, y]) => [Number(x), Number(y)] as const,
    );
    for (let index = 1; index < points.length; index++) {
      expect(points[index]?.[0]).toBeGreaterThan(points[index - 1]?.[0] as number);
      expect(points[index]?.[1]).toBeGreaterThan(points[index - 1]?.[1] as number);
    }
  });

  test('leaves a gap where a loss is not finite', () => {
    const [steps] = curvesOf(lossCurve(historyOf([4, 3, NaN, 1, 2], [])));
    expect(steps?.match(/M/g)).toHaveLength(2);
    expect(steps).not.toContain('NaN');
  });

  test('of a long run stays small', () => {
    const long = lossCurve(
      historyOf(
        Array.from({ length: 200_000 }, (_, step) => 5 / (1 + step)),
        [],
      ),
    );
    expect(long.length).toBeLessThan(40_000);
  });

  test('of a run without any finite loss says so', () => {
    for (const losses of [[], [NaN]]) {
      const empty = lossCurve(historyOf(losses, []));
      expect(empty).toContain('no finite loss yet');
      expect(empty).not.toMatch(/NaN|Infinity|undefined/);
    }
  });

  test('of one step, or of equal losses, has a scale', () => {
    for (const losses of [[2], [2, 2, 2], [0, 0]]) {
      expect(lossCurve(historyOf(losses, []))).not.toMatch(/NaN|Infinity|undefined/);
    }
  });

  test('has its title escaped', () => {
    expect(lossCurve(historyOf([1], []), { title: 'a<b & c' })).toContain('a&lt;b &amp; c');
  });
});

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
    bar.epoch(epoch(1, 10, 1.5, 1.25));
    bar.epoch({ ...epoch(2, 20, 1.5, null), best: false });
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
