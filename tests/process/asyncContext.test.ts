import { expect, it } from 'vitest';
import { runScript } from './support.js';

/**
 * In a process of its own: hooks that a test runner has set make async contexts reach callbacks of
 * native code that they do not reach otherwise.
 */
it('results and hooks of async calls belong to their calls in any process', () => {
  const { output, errors } = runScript(`
    import { AsyncLocalStorage } from 'node:async_hooks';
    import { callAsync, ones, Scope, tensor } from 'torchformer';
    const scopes = [new Scope(), new Scope(), new Scope()];
    const results = await Promise.all(
      scopes.map((scope) => scope.run(() => callAsync('aten::neg', ones([2])))),
    );
    for (const scope of scopes) {
      console.log(results.map((result) => result.isDisposed).join());
      scope.dispose();
    }
    console.log(results.map((result) => result.isDisposed).join());
    const requests = new AsyncLocalStorage();
    const pass = (name) => {
      const x = tensor([1, 2], { requiresGrad: true });
      x.registerHook(() => console.log(name, requests.getStore()));
      return requests.run(name, () => x.mul(x).sum().backwardAsync());
    };
    await Promise.all(['one', 'two'].map(pass));
  `);
  expect(errors).toBe('');
  expect(output.split('\n')).toEqual([
    'false,false,false',
    'true,false,false',
    'true,true,false',
    'true,true,true',
    'one one',
    'two two',
    '',
  ]);
});
