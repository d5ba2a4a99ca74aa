import { once } from 'node:events';
import { expect, it } from 'vitest';
import { call, callAsync, ones } from 'torchformer';

it("a warning of libtorch's is a warning of Node's, once a text", async () => {
  const heard: Error[] = [];
  const listen = (warning: Error) => heard.push(warning);
  process.on('warning', listen);
  try {
    const first = once(process, 'warning');
    // The sample standard deviation of one number does not exist: NaN, and a warning.
    expect(call('aten::std', ones([1]), true)).toBeDefined();
    await first;
    call('aten::std', ones([1]), true);
    await callAsync('aten::std', ones([1]), true);
    await new Promise((resolve) => setTimeout(resolve, 50));
  } finally {
    process.off('warning', listen);
  }
  expect(heard.map(({ name }) => name)).toEqual(['TorchWarning']);
  expect(heard[0]?.message).toContain('degrees of freedom');
});

it('a warning of an async op is heard too', async () => {
  const warning = once(process, 'warning') as Promise<[Error]>;
  await callAsync('aten::var', ones([1]), true);
  const [{ name }] = await warning;
  expect(name).toBe('TorchWarning');
});
