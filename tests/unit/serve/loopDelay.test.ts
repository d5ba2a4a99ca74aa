/** The delay of the event loop, which `/metrics` has. */
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LoopDelay } from '../../../lib/serve/loopDelay.js';

function measuring(): LoopDelay {
  const delay = new LoopDelay();
  onTestFinished(() => delay.close());
  return delay;
}

function holdTheLoop(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

describe('the delay of the event loop', () => {
  it('is 0 before anything has been measured', () => {
    expect(measuring().read()).toEqual({ p99: 0, max: 0 });
  });

  it('is how much later than its interval a timer comes', async () => {
    const delay = measuring();
    await wait(30);
    holdTheLoop(200);
    await wait(30);
    const { p99, max } = delay.read();
    // The timer was due at most 10 ms after the loop was held.
    expect(max).toBeGreaterThan(0.185);
    expect(p99).toBeGreaterThan(0.185);
  });

  it('is that since the last reading', async () => {
    const delay = measuring();
    await wait(30);
    holdTheLoop(200);
    await wait(30);
    delay.read();
    expect(delay.read()).toEqual({ p99: 0, max: 0 });
  });
});
