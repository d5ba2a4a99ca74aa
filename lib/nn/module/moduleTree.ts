import { checkOptions, checkString } from '../../runtime/options.js';
import { checkBoolean } from '../../tensor/check.js';
import type { Module } from './module.js';
import type { Buffer, Parameter } from './parameter.js';
import { childAt, splitPath } from './paths.js';
import type { ModuleClass } from './paths.js';
import {
  joinedName,
  mergedStateNames,
  moduleBrand,
  placesBelow,
  registeredIn,
} from './registration.js';
import type { Entry, Registered } from './registration.js';

/** What `namedParameters`, `namedBuffers` and `namedModules` list. */
export interface NamedOptions {
  /** comes before every name, with a dot; default '' */
  prefix?: string;
  /** submodules too; default true */
  recurse?: boolean;
  /** what is shared comes once, under its first name; default true */
  removeDuplicate?: boolean;
}

/** The part of {@link Module} that tells what is registered in it and below it. */
export class ModuleTree {
  /**
   * Names in state dicts where they differ from the property: `{ selfAttn: 'self_attn' }`.
   * Entries of base classes hold for subclasses too.
   */
  static readonly stateNames: Readonly<Record<string, string>> = {};

  /** @internal */
  get [moduleBrand](): true {
    return true;
  }

  /** The name in state dicts of a property; {@link Module.stateNames} decides unless overridden. */
  stateNameOf(property: string): string {
    return mergedStateNames(this.constructor).get(property) ?? property;
  }

  /** This module and all below it, parents first, each once. */
  modules(): Module[] {
    return placesBelow(asModule(this)).map(({ module }) => module);
  }

  /**
   * As {@link Module.modules}, with dotted names; this module's own name is `''`.
   * @throws TypeError for a module that is inside itself, and for options of a wrong type
   */
  namedModules(options: Omit<NamedOptions, 'recurse'> = {}): [string, Module][] {
    checkOptions('namedModules', options, ['prefix', 'removeDuplicate']);
    const { prefix = '', removeDuplicate = true } = options;
    checkString('namedModules', 'prefix', prefix);
    checkBoolean('namedModules', 'removeDuplicate', removeDuplicate);
    return placesBelow(asModule(this), { prefix, removeDuplicate }).map(({ name, module }) => [
      name,
      module,
    ]);
  }

  /** The direct submodules, each once. */
  children(): Module[] {
    return this.namedChildren().map(([, child]) => child);
  }

  /** The direct submodules with their names, each once (the first name). */
  namedChildren(): [string, Module][] {
    return unique(registeredIn(asModule(this)).children.map(({ name, value }) => [name, value]));
  }

  /** All parameters, shared ones once. `recurse: false`: this module's own only. */
  parameters(options: Pick<NamedOptions, 'recurse'> = {}): Parameter[] {
    checkOptions('parameters', options, ['recurse']);
    return this.namedParameters(options).map(([, parameter]) => parameter);
  }

  /** All parameters under their names in the state dict, shared ones once (the first name). */
  namedParameters(options: NamedOptions = {}): [string, Parameter][] {
    return named(this, 'namedParameters', options, ({ parameters }) => parameters);
  }

  /** All buffers, shared ones once. `recurse: false`: this module's own only. */
  buffers(options: Pick<NamedOptions, 'recurse'> = {}): Buffer[] {
    checkOptions('buffers', options, ['recurse']);
    return this.namedBuffers(options).map(([, buffer]) => buffer);
  }

  /** All buffers, those kept out of state dicts too, under their names, shared ones once. */
  namedBuffers(options: NamedOptions = {}): [string, Buffer][] {
    return named(this, 'namedBuffers', options, ({ buffers }) => buffers);
  }

  /**
   * The module at a dotted path of state names or properties: `'encoder.layers.0.self_attn'` or
   * `'encoder.layers.0.selfAttn'`; `''` is this module.
   *
   * @throws RangeError naming what there is instead
   */
  getSubmodule(path: string): Module;
  /**
   * The module at a path, of a class that is known.
   *
   * @param type the class it must be of, which is then the type of the result
   * @throws RangeError naming what there is instead, TypeError for another class
   */
  getSubmodule<M extends Module>(path: string, type: ModuleClass<M>): M;
  getSubmodule(path: string, type?: ModuleClass<Module>): Module {
    const module = splitPath('getSubmodule', path).reduce<Module>(
      (owner, name) => childAt('getSubmodule', asModule(this), path, owner, 'children', name),
      asModule(this),
    );
    const fits: boolean = type === undefined || module instanceof type;
    if (!fits) {
      throw new TypeError(
        `getSubmodule: "${path}" must be a ${type?.name}, got a ${module.constructor.name}`,
      );
    }
    return module;
  }

  /** The parameter at a dotted path, as for {@link Module.getSubmodule}. @throws RangeError */
  getParameter(path: string): Parameter {
    const [place, name] = ownerOf(this, 'getParameter', path);
    return childAt('getParameter', asModule(this), path, place, 'parameters', name);
  }

  /** The buffer at a dotted path, as for {@link Module.getSubmodule}. @throws RangeError */
  getBuffer(path: string): Buffer {
    const [place, name] = ownerOf(this, 'getBuffer', path);
    return childAt('getBuffer', asModule(this), path, place, 'buffers', name);
  }

  /**
   * Number of elements in all parameters, shared ones counted once.
   *
   * @param options `trainable`: true counts only those with gradients, false only the frozen
   *   ones; default: all
   */
  parameterCount(options: { trainable?: boolean } = {}): number {
    checkOptions('parameterCount', options, ['trainable']);
    const { trainable } = options;
    if (trainable !== undefined) checkBoolean('parameterCount', 'trainable', trainable);
    return this.parameters()
      .filter(({ requiresGrad }) => trainable === undefined || requiresGrad === trainable)
      .reduce((sum, { numel }) => sum + numel, 0);
  }
}

/** Keeps the first pair of each value. */
function unique<T>(pairs: [string, T][]): [string, T][] {
  const seen = new Set<T>();
  return pairs.filter(([, value]) => !seen.has(value) && seen.add(value));
}

/** Every module is one of these and the other way round; the two classes are for the length. */
function asModule(tree: ModuleTree): Module {
  return tree as Module;
}

function named<T>(
  tree: ModuleTree,
  owner: string,
  options: NamedOptions,
  pick: (registered: Registered) => readonly Entry<T>[],
): [string, T][] {
  checkOptions(owner, options, ['prefix', 'recurse', 'removeDuplicate']);
  const { prefix = '', recurse = true, removeDuplicate = true } = options;
  checkString(owner, 'prefix', prefix);
  checkBoolean(owner, 'recurse', recurse);
  checkBoolean(owner, 'removeDuplicate', removeDuplicate);
  const places = recurse
    ? placesBelow(asModule(tree), { prefix, removeDuplicate })
    : [{ name: prefix, registered: registeredIn(asModule(tree)) }];
  const pairs = places.flatMap(({ name: place, registered }) =>
    pick(registered).map(({ name, value }): [string, T] => [joinedName(place, name), value]),
  );
  return removeDuplicate ? unique(pairs) : pairs;
}

/** The module that a path's last name belongs to, and that name. */
function ownerOf(tree: ModuleTree, owner: string, path: string): [Module, string] {
  const names = splitPath(owner, path);
  return [tree.getSubmodule(names.slice(0, -1).join('.')), names.at(-1) ?? ''];
}
