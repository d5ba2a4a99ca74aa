import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { Parameter, Tensor, ones } from 'torchformer';
import { root } from '../../process/support.js';

const folder = join(root, 'dist/tensor/methods');
const source = join(root, 'lib/tensor/methods');

/** The classes of methods in the folder, by name. */
const groups = new Map<string, { prototype: object }>();
for (const file of readdirSync(source)) {
  if (file === 'index.ts') continue;
  const url = pathToFileURL(join(folder, file.replace(/\.ts$/, '.js'))).href;
  for (const [name, value] of Object.entries((await import(url)) as Record<string, unknown>)) {
    if (name.endsWith('Methods')) groups.set(name, value as { prototype: object });
  }
}

const methodsOf = ({ prototype }: { prototype: object }) =>
  Reflect.ownKeys(prototype).filter((key) => key !== 'constructor');

describe('the methods of Tensor', () => {
  it('are those of all groups, none of them twice', () => {
    expect(groups.size).toBeGreaterThan(10);
    const inGroups = [...groups.values()].flatMap(methodsOf);
    expect(new Set(inGroups).size).toBe(inGroups.length);
    for (const group of groups.values()) {
      for (const key of methodsOf(group)) {
        const own = Object.getOwnPropertyDescriptor(Tensor.prototype, key);
        expect(own, String(key)).toEqual(Object.getOwnPropertyDescriptor(group.prototype, key));
      }
    }
  });

  it('are declared for TypeScript too', () => {
    const declared = readFileSync(join(folder, 'index.d.ts'), 'utf8');
    const [, list = ''] = /interface TensorMethods extends ([^{]*)\{/.exec(declared) ?? [];
    expect(list.split(',').map((name) => name.trim())).toEqual([...groups.keys()].sort());
  });

  it("are the prototype's own and not enumerable, as those of any class", () => {
    expect(Object.keys(Tensor.prototype)).toEqual([]);
    expect(Object.hasOwn(Tensor.prototype, 'softmax')).toBe(true);
    expect(Object.hasOwn(Tensor.prototype, Symbol.iterator)).toBe(true);
    expect(Tensor.prototype.constructor).toBe(Tensor);
    const x = ones([2]);
    const names: string[] = [];
    for (const name in x) names.push(name);
    expect(names).toEqual(Object.keys(x));
  });

  it('can be overridden by a subclass, which reaches them by super', () => {
    class Loud extends Parameter {
      override add(other: Tensor | number): Tensor {
        return super.add(other).mul(10);
      }
    }
    const loud = new Loud(ones([2]));
    expect(loud).toBeInstanceOf(Tensor);
    expect(loud.add(1).toArray()).toEqual([20, 20]);
    expect(loud.sub(1).toArray()).toEqual([0, 0]);
  });
});
