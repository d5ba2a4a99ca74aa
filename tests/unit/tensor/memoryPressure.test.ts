import { setImmediate as nextTick } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { call, callAsync, callTensor, empty, ones, tidy, zeros, type Tensor } from 'torchformer';
import { native } from '../../../dist/tensor/dispatch.js';

const megabyte = 2 ** 20;
const sized = (megabytes: number): Tensor => zeros([megabytes * (megabyte / 4)]);
/** What the collector has been told about memory outside its heap, beside what was there before. */
let before = 0;
const toldYet = (): number => (native().reportedBytes() - before) / megabyte;

/** After a report such as the end of a tick brings. */
function told(): number {
  native().reportMemory();
  return toldYet();
}

function measure(): void {
  native().reportMemory();
  before = native().reportedBytes();
}

describe('what the collector is told about the memory of tensors', () => {
  it('counts a storage once, as long as any tensor of it lives', () => {
    measure();
    const first = sized(4);
    const view = first.reshape([2, -1]);
    const slice = view.select(0, 0);
    expect(told()).toBe(4);
    first.dispose();
    expect(told()).toBe(4);
    view.dispose();
    expect(told()).toBe(4);
    slice.dispose();
    expect(told()).toBe(0);
  });

  it('is told at the end of the tick, and at once of what is freed', async () => {
    await nextTick();
    measure();
    const first = sized(8);
    tidy(() => void sized(100));
    expect(toldYet()).toBe(0);
    await nextTick();
    expect(toldYet()).toBe(8);
    first.dispose();
    expect(toldYet()).toBe(0);
  });

  it('is told of what many tensors hold before the tick ends', () => {
    measure();
    const first = sized(8);
    for (let count = 0; count < 1024; count++) zeros([1]).dispose();
    expect(toldYet()).toBe(8);
    first.dispose();
  });

  it('counts what leaves a scope as a view', () => {
    measure();
    const kept = Array.from({ length: 3 }, () => tidy(() => sized(4).reshape([4, -1])));
    expect(told()).toBe(12);
    kept.forEach((tensor) => tensor.dispose());
    expect(told()).toBe(0);
  });

  it('follows a tensor to other data', () => {
    measure();
    const parameter = sized(8);
    const source = sized(2);
    native().setData(parameter, source);
    expect(told()).toBe(2);
    source.dispose();
    expect(told()).toBe(2);
    native().setData(parameter, ones([1]));
    expect(told()).toBe(0);
    native().setData(parameter, sized(4));
    expect(told()).toBe(4);
    parameter.dispose();
    expect(told()).toBe(4);
  });

  it.each([
    ['resize_', (x: Tensor) => call('aten::resize_', x, [4 * (megabyte / 4)])],
    ['set_', (x: Tensor) => tidy(() => call('aten::set_.source_Tensor', x, sized(4)))],
    ['out', (x: Tensor) => tidy(() => call('aten::neg.out', sized(4), { out: x }))],
    ['resize_ off the loop', (x: Tensor) => callAsync('aten::resize_', x, [megabyte])],
  ])('follows a tensor to another storage: %s', async (_, move) => {
    measure();
    const x = empty([0]);
    await move(x);
    expect(told()).toBe(4);
    x.dispose();
    expect(told()).toBe(0);
  });

  it('is what is left after a conversion', () => {
    measure();
    const half = tidy(() => sized(4).bfloat16());
    expect(told()).toBe(2);
    half.dispose();
    expect(told()).toBe(0);
    callTensor('aten::zeros', [3]).dispose();
    expect(told()).toBe(0);
  });
});
