import { describe } from '../runtime/options.js';
import type { Tensor } from '../tensor/tensor.js';
import { Module } from './module.js';
import type { TensorModule } from './module.js';
import { isModule } from './registration.js';

/**
 * A list of modules that are registered under their positions, as `torch.nn.ModuleList`.
 * `list[0]`, `list.at(-1)`, `for (const module of list)`.
 */
export class ModuleList<M extends Module = Module> extends Module implements Iterable<M> {
  // The members are own properties '0', '1', …: JavaScript keeps such keys in numeric order.
  [index: number]: M;
  /** Number of members. */
  length = 0;

  constructor(modules: Iterable<M> = []) {
    super();
    for (const module of modules) this.push(module);
  }

  /** Adds members at the end. @throws TypeError for anything but modules */
  push(...modules: M[]): this {
    for (const module of modules) {
      if (!isModule(module)) {
        throw new TypeError(
          `${this.constructor.name}: members must be modules, got ${describe(module)}`,
        );
      }
      this[this.length++] = module;
    }
    return this;
  }

  /** The member at a position, counted from the end if negative. @throws RangeError */
  at(index: number): M {
    const module = this[index < 0 ? this.length + index : index];
    if (module === undefined) {
      throw new RangeError(
        `${this.constructor.name}: index must be from ${-this.length} to ${this.length - 1}, got ${index}`,
      );
    }
    return module;
  }

  *[Symbol.iterator](): Iterator<M> {
    for (let index = 0; index < this.length; index++) yield this.at(index);
  }
}

/** Feeds each module's result to the next, as `torch.nn.Sequential`. */
export class Sequential extends ModuleList<TensorModule> {
  constructor(...modules: TensorModule[]) {
    super(modules);
  }

  /**
   * @param input whatever the first module takes
   * @returns the last module's result; the input itself without modules
   */
  override forward(input: Tensor): Tensor {
    let output = input;
    for (const module of this) output = module.forward(output);
    return output;
  }
}
