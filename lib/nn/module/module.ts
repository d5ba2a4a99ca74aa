import {
  checkBoolean,
  checkFunction,
  checkInteger,
  checkOptions,
  checkString,
} from '../../runtime/arguments.js';
import type { RemovableHook } from '../../tensor/autogradFunction.js';
import type { Device, DeviceChoice } from '../../tensor/device.js';
import { isFloatingPoint } from '../../tensor/dtype.js';
import type { DType } from '../../tensor/dtype.js';
import type { Tensor } from '../../tensor/tensor.js';
import { copyModule } from './copyModule.js';
import { describeModule } from './describeModule.js';
import { addHook, clearHooks } from './hooks.js';
import type { BackwardHook, ForwardHook, ForwardPreHook, HookOptions } from './hooks.js';
import { loadStateInto } from './loadState.js';
import type { DeriveBuffer, LoadStateOptions, LoadStateResult, StateSource } from './loadState.js';
import { checkedTarget, moveModule } from './moveModule.js';
import type { FloatingDType, ModuleTarget } from './moveModule.js';
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

/** Shape, dtype and device that {@link Module.deriveBuffer} should return. */
export interface BufferForm {
  /** Shape of the buffer; it may be longer or shorter than the current one. */
  readonly shape: readonly number[];
  /** Dtype of the buffer, to whose precision the values are computed. */
  readonly dtype: DType;
  /** Device of the buffer. */
  readonly device: Device;
}

/** Options of `namedParameters`, `namedBuffers` and `namedModules`. */
export interface NamedOptions {
  /** prepended to every name, with a dot; default '' */
  prefix?: string;
  /** include submodules; default true */
  recurse?: boolean;
  /** list shared objects once, under their first name; default true */
  removeDuplicate?: boolean;
}

/** A module that maps one tensor to one tensor, such as the members of {@link Sequential}. */
export type TensorModule = Module & { forward(input: Tensor): Tensor };

/** Calls the protected method, for the files that implement the methods of `Module`. */
let deriveBufferOf: DeriveBuffer;

/**
 * Base class of all modules, like `torch.nn.Module`.
 *
 * Parameters, buffers and submodules are registered by assigning them to a property:
 *
 * ```ts
 * class Classifier extends Module {
 *   hidden = new Linear(16, 32);
 *   out = new Linear(32, 4);
 *   forward(x: Tensor): Tensor {
 *     return this.out.forward(this.hidden.forward(x).relu());
 *   }
 * }
 * ```
 *
 * Only own enumerable properties are registered. `#private` fields and `accessor` fields are not,
 * and {@link Module.clone} does not copy them. Use TypeScript's `private` instead.
 */
export class Module {
  static {
    deriveBufferOf = (owner, property, form) => owner.deriveBuffer(property, form);
  }

  /**
   * Names in state dicts that differ from the property: `{ selfAttn: 'self_attn' }`.
   * Subclasses inherit the entries of their base classes.
   */
  static readonly stateNames: Readonly<Record<string, string>> = {};

  /** Properties that store results of the last forward; {@link Module.clone} sets them to null. */
  static readonly transientNames: readonly string[] = [];

  /**
   * Whether `forward` accepts packed rows `[tokens, …]` as well as `[B, S, …]`, because it treats
   * each row independently or takes {@link PackedSequences} into account. Default false. Each class
   * declares it separately; it is not inherited, since a subclass may have another `forward`.
   */
  static readonly takesPackedRows: boolean = false;

  /** @internal */
  get [moduleBrand](): true {
    return true;
  }

  /** Name of a property in state dicts; from {@link Module.stateNames} unless overridden. */
  stateNameOf(property: string): string {
    return mergedStateNames(this.constructor).get(property) ?? property;
  }

  /** True in training mode, where dropout is active. Set by `train()` and `eval()`; initially true. */
  training = true;

  /**
   * Computes the module's output. Subclasses declare their own arguments and result.
   * @throws TypeError if the class does not define it
   */
  forward(..._inputs: never[]): unknown {
    throw new TypeError(`${this.constructor.name} has no forward method`);
  }

  /**
   * Computes a buffer that is determined by the module's settings, with the given shape, dtype and
   * device. Returns null (the default) for buffers with state of their own, and for shapes that the
   * buffer cannot have. {@link Module.to} recomputes a derived buffer in the precision of the new
   * dtype, and its length in a state dict may differ.
   *
   * @param _property name of the buffer's property
   */
  protected deriveBuffer(_property: string, _form: BufferForm): Tensor | null {
    return null;
  }

  /** Settings that {@link Module.toString} shows inside the parentheses. */
  protected extraDescription(): string {
    return '';
  }

  /**
   * A description of what in this module, not counting submodules, needs padded batches; null: nothing.
   * @internal
   */
  get packingObstacle(): string | null {
    const ownClass = this.constructor as typeof Module;
    if (!Object.hasOwn(ownClass, 'takesPackedRows') || !ownClass.takesPackedRows) {
      return `the module ${ownClass.name}`;
    }
    // Hooks replace the forward of the class.
    const isPlain = this.forward === ownClass.prototype.forward;
    return isPlain ? null : `hooks or a user-defined forward in ${ownClass.name}`;
  }

  // ---- modes ----

  /** Sets training mode (false: evaluation mode) in this module and all submodules. */
  train(mode = true): this {
    checkBoolean('train', 'mode', mode);
    for (const module of this.modules()) module.training = mode;
    return this;
  }

  /** Sets evaluation mode, without dropout, in this module and all submodules. */
  eval(): this {
    return this.train(false);
  }

  /**
   * Freezes (false) or unfreezes all parameters.
   * @throws TypeError if a parameter has an integer dtype and so cannot have a gradient; nothing
   *   has changed then
   */
  requiresGrad_(requiresGrad = true): this {
    checkBoolean('requiresGrad_', 'requiresGrad', requiresGrad);
    const parameters = this.namedParameters();
    const integers = parameters.find(([, { dtype }]) => !isFloatingPoint(dtype));
    if (requiresGrad && integers !== undefined) {
      throw new TypeError(
        `requiresGrad_: parameter "${integers[0]}" is ${integers[1].dtype}, which has no gradient`,
      );
    }
    for (const [, parameter] of parameters) parameter.requiresGrad = requiresGrad;
    return this;
  }

  /** Sets all gradients to null. */
  zeroGrad(): void {
    for (const parameter of this.parameters()) parameter.grad = null;
  }

  /**
   * Calls `visit` on every submodule, children first, and on this module last. As in PyTorch, a
   * module shared by several modules is visited once for each of them.
   */
  apply(visit: (module: Module) => void): this {
    checkFunction('apply', 'visit', visit);
    const places = placesBelow(this, { removeDuplicate: false });
    const descend = (module: Module) => {
      for (const child of module.children()) descend(child);
      visit(module);
    };
    if (places.length > 0) descend(this);
    return this;
  }

  // ---- the tree ----

  /** This module and all its submodules, parents first, each once. */
  modules(): Module[] {
    return placesBelow(this).map(({ module }) => module);
  }

  /**
   * Like {@link Module.modules}, with dotted names; the name of this module is `''`.
   * @throws TypeError if a module contains itself, or an option has a wrong type
   */
  namedModules(options: Omit<NamedOptions, 'recurse'> = {}): [string, Module][] {
    checkOptions('namedModules', options, ['prefix', 'removeDuplicate']);
    const { prefix = '', removeDuplicate = true } = options;
    checkString('namedModules', 'prefix', prefix);
    checkBoolean('namedModules', 'removeDuplicate', removeDuplicate);
    return placesBelow(this, { prefix, removeDuplicate }).map(({ name, module }) => [name, module]);
  }

  /** The direct submodules, each once. */
  children(): Module[] {
    return this.namedChildren().map(([, child]) => child);
  }

  /** The direct submodules with their names, each once (under the first name). */
  namedChildren(): [string, Module][] {
    return unique(registeredIn(this).children.map(({ name, value }) => [name, value]));
  }

  /** All parameters, shared ones once. `recurse: false`: without those of submodules. */
  parameters(options: Pick<NamedOptions, 'recurse'> = {}): Parameter[] {
    checkOptions('parameters', options, ['recurse']);
    return this.namedParameters(options).map(([, parameter]) => parameter);
  }

  /** All parameters with their names in the state dict, shared ones once (under the first name). */
  namedParameters(options: NamedOptions = {}): [string, Parameter][] {
    return named(this, 'namedParameters', options, ({ parameters }) => parameters);
  }

  /** All buffers, shared ones once. `recurse: false`: without those of submodules. */
  buffers(options: Pick<NamedOptions, 'recurse'> = {}): Buffer[] {
    checkOptions('buffers', options, ['recurse']);
    return this.namedBuffers(options).map(([, buffer]) => buffer);
  }

  /** All buffers with their names, including non-persistent ones, shared ones once. */
  namedBuffers(options: NamedOptions = {}): [string, Buffer][] {
    return named(this, 'namedBuffers', options, ({ buffers }) => buffers);
  }

  /**
   * The module at a dotted path of state names or properties: `'encoder.layers.0.self_attn'` or
   * `'encoder.layers.0.selfAttn'`; `''` is this module.
   *
   * @throws RangeError if there is none; the message lists the submodules that exist
   */
  getSubmodule(path: string): Module;
  /**
   * The module at a path, with a known class.
   *
   * @param type the class of the module, which is also the type of the result
   * @throws RangeError if there is none; TypeError if it has another class
   */
  getSubmodule<M extends Module>(path: string, type: ModuleClass<M>): M;
  getSubmodule(path: string, type?: ModuleClass<Module>): Module {
    const module = splitPath('getSubmodule', path).reduce<Module>(
      (owner, name) => childAt('getSubmodule', this, path, owner, 'children', name),
      this,
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
    return childAt('getParameter', this, path, place, 'parameters', name);
  }

  /** The buffer at a dotted path, as for {@link Module.getSubmodule}. @throws RangeError */
  getBuffer(path: string): Buffer {
    const [place, name] = ownerOf(this, 'getBuffer', path);
    return childAt('getBuffer', this, path, place, 'buffers', name);
  }

  /**
   * Number of elements in all parameters, shared ones counted once.
   *
   * @param options `trainable`: true counts only parameters that require gradients, false only
   *   frozen ones; default: all
   */
  parameterCount(options: { trainable?: boolean } = {}): number {
    checkOptions('parameterCount', options, ['trainable']);
    const { trainable } = options;
    if (trainable !== undefined) checkBoolean('parameterCount', 'trainable', trainable);
    return this.parameters()
      .filter(({ requiresGrad }) => trainable === undefined || requiresGrad === trainable)
      .reduce((sum, { numel }) => sum + numel, 0);
  }

  // ---- hooks ----

  /**
   * Calls `hook(module, inputs)` before each `forward`; if it returns an array, that replaces the
   * inputs. A module without hooks has no overhead.
   *
   * Hooks run for `module.forward(…)`, not for `super.forward(…)` inside it. Layers run in a
   * `tidy`, so a hook must `keep` tensors that it stores. A {@link Module.clone} has the same
   * hooks, as with Python's `copy.deepcopy`; handles of the original do not remove them
   * ({@link Module.clearHooks} does).
   *
   * @returns a handle whose `remove()` removes the hook
   */
  registerForwardPreHook<M extends Module>(
    this: M,
    hook: ForwardPreHook<M>,
    options?: HookOptions,
  ): RemovableHook {
    return addHook(this, 'forwardPre', hook, options);
  }

  /**
   * Calls `hook(module, inputs, output)` after each `forward`; a return value other than undefined
   * or null replaces the output and must be of the same kind: a tensor for a tensor. See
   * {@link Module.registerForwardPreHook}.
   */
  registerForwardHook<M extends Module>(
    this: M,
    hook: ForwardHook<M>,
    options?: HookOptions,
  ): RemovableHook {
    return addHook(this, 'forward', hook, options);
  }

  /**
   * Calls `hook(module, gradInputs, gradOutputs)` in each backward pass through a later `forward`,
   * like `register_full_backward_hook`, with one gradient for each argument and each result of
   * `forward`, or null if it has none. If it returns an array, that replaces `gradInputs`. If no
   * argument requires a gradient (such as ids), the hook is called with nulls once the gradients of
   * the outputs are known.
   *
   * The result of `forward` must be a tensor or an array of tensors.
   */
  registerBackwardHook<M extends Module>(
    this: M,
    hook: BackwardHook<M>,
    options?: HookOptions,
  ): RemovableHook {
    return addHook(this, 'backward', hook, options);
  }

  /** Removes all hooks of this module, but not those of submodules. */
  clearHooks(): this {
    clearHooks(this);
    return this;
  }

  // ---- moving and copying ----

  /**
   * Moves parameters, buffers and gradients to a device and converts floating-point ones to a
   * dtype. Every Parameter stays the same object, so optimizers continue to work on it (their state
   * is not moved: create the optimizer afterwards, or load its state again).
   * If it fails (no such device, out of memory), nothing has changed.
   *
   * `to({ device, dtype })`, `to('cuda:0')`, `to('bfloat16')`, `to('cuda:0', 'bfloat16')` or
   * `to(tensor)` for that tensor's device and dtype.
   *
   * @throws TypeError if the device or dtype is invalid; RangeError if there is no GPU with that
   *   index; TorchError ERR_CUDA_UNAVAILABLE
   */
  to(target: ModuleTarget | FloatingDType | Tensor): this;
  to(device: DeviceChoice, dtype?: FloatingDType): this;
  to(target: ModuleTarget | DeviceChoice | FloatingDType | Tensor, dtype?: FloatingDType): this {
    moveModule(this, checkedTarget(target, dtype), deriveBufferOf);
    return this;
  }

  /** `to('cpu')` */
  cpu(): this {
    return this.to('cpu');
  }

  /**
   * `to('cuda')`, or to the GPU with this index.
   * @throws TorchError ERR_CUDA_UNAVAILABLE; TypeError, RangeError if `index` is not a GPU's
   */
  cuda(index?: number): this {
    if (index === undefined) return this.to('cuda');
    return this.to(`cuda:${checkInteger('Module.cuda', 'index', index, 0)}`);
  }

  /** `to({ dtype: 'float32' })` */
  float(): this {
    return this.to({ dtype: 'float32' });
  }

  /** `to({ dtype: 'float64' })` */
  double(): this {
    return this.to({ dtype: 'float64' });
  }

  /** `to({ dtype: 'float16' })` */
  half(): this {
    return this.to({ dtype: 'float16' });
  }

  /** `to({ dtype: 'bfloat16' })` */
  bfloat16(): this {
    return this.to({ dtype: 'bfloat16' });
  }

  /**
   * A deep copy that shares no memory with this module. Modules, parameters and memory that are
   * shared within the module are shared within the copy. Modes, frozen parameters and hooks are
   * copied; gradients, graphs and stored results are not.
   * Functions and objects of user-defined classes are shared with the copy, so a function stored on
   * the module must not use the module itself.
   *
   * @throws TypeError if a module contains itself
   */
  clone(): this {
    return copyModule(this);
  }

  // ---- state ----

  /**
   * Parameters and persistent buffers by name, in PyTorch's order, with PyTorch's names for the
   * classes of this package. The values are detached views: they change with training, and writing
   * to them changes the module. Shared parameters are listed under each of their names, as the same
   * tensor.
   *
   * @param options `prefix`: prepended to every name, such as `'model.'`. `keepVars`: true returns
   *   the Parameters and Buffers themselves; default false
   * @throws TypeError if a name is used twice, if modules, parameters or buffers are inside plain
   *   collections or were replaced by another value, or if a module contains itself
   */
  stateDict(options: { prefix?: string; keepVars?: boolean } = {}): Map<string, Tensor> {
    checkOptions('stateDict', options, ['prefix', 'keepVars']);
    const { prefix = '', keepVars = false } = options;
    checkString('stateDict', 'prefix', prefix);
    checkBoolean('stateDict', 'keepVars', keepVars);
    const views = new Map<Tensor, Tensor>();
    const state = new Map<string, Tensor>();
    for (const { name: place, registered } of placesBelow(this, { removeDuplicate: false })) {
      const persistent = registered.buffers.filter(({ value }) => value.persistent);
      for (const { name, value } of [...registered.parameters, ...persistent]) {
        const view = views.get(value) ?? (keepVars ? value : value.detach());
        views.set(value, view);
        state.set(prefix + joinedName(place, name), view);
      }
    }
    return state;
  }

  /**
   * Copies values by name into parameters and buffers, converting dtype and device to theirs.
   * Everything is checked before anything is copied.
   *
   * A derived buffer ({@link Module.deriveBuffer}) may have another length: the module keeps its own
   * values, after a check that the given ones follow the same formula.
   *
   * @param state a Map or plain object from names to tensors
   * @param options `strict`: whether missing and unexpected keys are errors, default true; wrong
   *   shapes and a state dict without any weight of the module always are. `stripPrefix`: a prefix
   *   such as `'module.'` to remove from the keys. `wrappedIn`: the key that contains the state dict
   * @returns missing and unexpected keys (with `strict: false`)
   * @throws StateDictError with the missing, unexpected and mismatched keys
   */
  loadStateDict(state: StateSource, options: LoadStateOptions = {}): LoadStateResult {
    return loadStateInto(this, state, options, deriveBufferOf);
  }

  /**
   * Frees the memory of all parameters, gradients and buffers; the module cannot be used afterwards.
   * A class with other resources overrides this; disposing of an outer module calls it as well.
   */
  dispose(): void {
    for (const module of this.modules()) {
      if (module !== this && module.dispose !== Module.prototype.dispose) module.dispose();
    }
    for (const tensor of [...this.parameters(), ...this.buffers()]) tensor.dispose();
  }

  /** {@link Module.dispose} at the end of a block: `using model = makeModel(…)`. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  // ---- printing ----

  /** The tree of modules, as PyTorch prints it. */
  toString(): string {
    return describeModule(this, this.extraDescription(), { fold: false });
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }
}

/** Keeps the first pair with each value. */
function unique<T>(pairs: [string, T][]): [string, T][] {
  const seen = new Set<T>();
  return pairs.filter(([, value]) => !seen.has(value) && seen.add(value));
}

function named<T>(
  module: Module,
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
    ? placesBelow(module, { prefix, removeDuplicate })
    : [{ name: prefix, registered: registeredIn(module) }];
  const pairs = places.flatMap(({ name: place, registered }) =>
    pick(registered).map(({ name, value }): [string, T] => [joinedName(place, name), value]),
  );
  return removeDuplicate ? unique(pairs) : pairs;
}

/** The module that contains the last name of a path, and that name. */
function ownerOf(module: Module, owner: string, path: string): [Module, string] {
  const names = splitPath(owner, path);
  return [module.getSubmodule(names.slice(0, -1).join('.')), names.at(-1) ?? ''];
}
