import { describe, expect, it } from 'vitest';
import { native } from '../../../dist/tensor/dispatch.js';

const addon = native();
const own = addon.listOps().filter((name) => name.startsWith('torchformer::'));
const split = (name: string): [string, string] => {
  const dot = name.indexOf('.', name.indexOf('::'));
  return dot < 0 ? [name, ''] : [name.slice(0, dot), name.slice(dot + 1)];
};

describe("the package's own ops", () => {
  it('are registered under the names that the modules call', () => {
    expect(own).toEqual(
      expect.arrayContaining([
        'torchformer::attention',
        'torchformer::attention_reference',
        'torchformer::dropout',
        'torchformer::feed_forward',
        'torchformer::feed_forward_reference',
        'torchformer::layer_norm',
        'torchformer::layer_norm_reference',
      ]),
    );
  });

  // Without one, an op on tensors with gradients would give results that claim to have a graph
  // but whose backward fails, or worse, does nothing.
  it.each(own)('%s has an autograd kernel or is composed of ops that have', (name) => {
    const line = addon
      .kernels(...split(name))
      .split('\n')
      .find((text) => text.startsWith('AutogradCPU'));
    expect(line).toMatch(/\[(autograd kernel|math kernel)\]/);
  });

  it('of ATen are all there: thousands, each with a schema', () => {
    const names = addon.listOps();
    expect(names.length).toBeGreaterThan(3000);
    expect(addon.overloads('aten::add')).toEqual(expect.arrayContaining(['Tensor', 'Scalar']));
    expect(addon.overloads('aten::none_such')).toEqual([]);
    expect(addon.bind('aten::relu', '').schema).toBe('aten::relu(Tensor self) -> Tensor');
  });
});

describe('all but the ops with exotic arguments', () => {
  it('can be bound', () => {
    const refused: string[] = [];
    for (const name of addon.listOps()) {
      try {
        addon.bind(...split(name));
      } catch (error) {
        expect(error).toMatchObject({ code: 'ERR_NOT_IMPLEMENTED' });
        refused.push(name);
      }
    }
    expect(refused.length).toBeLessThan(200);
    expect(refused.filter((name) => name.startsWith('torchformer::'))).toEqual([]);
  });
});
