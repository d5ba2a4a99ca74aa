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

/** What {@link Module.deriveBuffer} is asked for. */
export interface BufferForm {
  /** Shape of the buffer that is asked for; it may be longer or shorter than the present one. */
  readonly shape: readonly number[];
  /** Its element type, whose precision the values should have. */
  readonly dtype: DType;
  /** Where it is to be. */
  readonly device: Device;
}

/** What `namedParameters`, `namedBuffers` and `namedModules` list. */
export interface NamedOptions {
  /** comes before every name, with a dot; default '' */
  prefix?: string;
  /** submodules too; default true */
  recurse?: boolean;
  /** what is shared comes once, under its first name; default true */
  removeDuplicate?: boolean;
}

/** A module from one tensor to one tensor, such as the members of {@link Sequential}. */
export type TensorModule = Module & { forward(input: Tensor): Tensor };

/** Calls the protected method, for the files that do the work of others. */
let deriveBufferOf: DeriveBuffer;

/**
 * The base of everything with parameters, as `torch.nn.Module`.
 *
 * Parameters, buffers and submodules are registered by plain assignment to a property:
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
 * Only own enumerable properties count: `#private` fields and `accessor` fields are invisible
 * here, and are not copied by {@link Module.clone} either. Use TypeScript's `private` instead.
 */
export class Module {
  static {
    deriveBufferOf = (owner, property, form) => owner.deriveBuffer(property, form);
  }

  /**
   * Names in state dicts where they differ from the property: `{ selfAttn: 'self_attn' }`.
   * Entries of base classes hold for subclasses too.
   */
  static readonly stateNames: Readonly<Record<string, string>> = {};

  /** Properties with results of the last forward, which {@link Module.clone} sets to null. */
  static readonly transientNames: readonly string[] = [];

  /**
   * Whether `forward` works on packed rows `[tokens, …]` as on `[B, S, …]`: because it treats each
   * row alone, or because it knows the sequences ({@link PackedSequences}). Default false. A class
   * declares it for itself; it is not inherited, since a subclass may have another `forward`.
   */
  static readonly takesPackedRows: boolean = false;

  /** @internal */
  get [moduleBrand](): true {
    return true;
  }

  /** The name in state dicts of a property; {@link Module.stateNames} decides unless overridden. */
  stateNameOf(property: string): string {
    return mergedStateNames(this.constructor).get(property) ?? property;
  }

  /** True in training mode (the initial one): dropout is active. Set by `train()` and `eval()`. */
  training = true;

  /**
   * Computes the module's result. Subclasses declare their own arguments and result.
   * @throws TypeError when the class has none
   */
  forward(..._inputs: never[]): unknown {
    throw new TypeError(`${this.constructor.name} has no forward method`);
  }

  /**
   * A buffer that follows from the module's settings, computed afresh in the form asked; null (the
   * default) for buffers that hold state of their own, and for shapes the buffer cannot have.
   * A derived buffer is recomputed by {@link Module.to}, so that its precision is the new dtype's,
   * and may have another length in a state dict.
   *
   * @param _property name of the buffer's property
   */
  protected deriveBuffer(_property: string, _form: BufferForm): Tensor | null {
    return null;
  }

  /** Settings shown by {@link Module.toString} between the brackets. */
  protected extraDescription(): string {
    return '';
  }

  /**
   * What in this module, its submodules aside, needs padded batches, in words; null: nothing.
   * @internal
   */
  get packingObstacle(): string | null {
    const ownClass = this.constructor as typeof Module;
    if (!Object.hasOwn(ownClass, 'takesPackedRows') || !ownClass.takesPackedRows) {
      return `the module ${ownClass.name}`;
    }
    // Hooks hide the forward of the class.
    const isPlain = this.forward === ownClass.prototype.forward;
    return isPlain ? null : `hooks or a forward of its own in ${ownClass.name}`;
  }

  // ---- modes ----

  /** Sets training mode here and in all submodules. */
  train(mode = true): this {
    checkBoolean('train', 'mode', mode);
    for (const module of this.modules()) module.training = mode;
    return this;
  }

  /** Sets evaluation mode here and in all submodules: no dropout. */
  eval(): this {
    return this.train(false);
  }

  /**
   * Freezes (false) or thaws all parameters.
   * @throws TypeError for a parameter of integers, which can have no gradient; nothing has changed
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

  /** Drops all gradients. */
  zeroGrad(): void {
    for (const parameter of this.parameters()) parameter.grad = null;
  }

  /**
   * Calls `visit` with every submodule, children first, and with this module last. As in PyTorch,
   * a module that several modules share is visited once for each of them.
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

  /** This module and all below it, parents first, each once. */
  modules(): Module[] {
    return placesBelow(this).map(({ module }) => module);
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
    return placesBelow(this, { prefix, removeDuplicate }).map(({ name, module }) => [name, module]);
  }

  /** The direct submodules, each once. */
  children(): Module[] {
    return this.namedChildren().map(([, child]) => child);
  }

  /** The direct submodules with their names, each once (the first name). */
  namedChildren(): [string, Module][] {
    return unique(registeredIn(this).children.map(({ name, value }) => [name, value]));
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

  // ---- hooks ----

  /**
   * Calls `hook(module, inputs)` before each `forward`; an array it returns takes the place of the
   * inputs. Without hooks a module runs as if there were none: they are looked up nowhere.
   *
   * Hooks run for `module.forward(…)`, not for `super.forward(…)` inside it. Layers run in a
   * `tidy`: what a hook stores for later, it has to `keep`. A {@link Module.clone} has the same
   * hooks, as with Python's `copy.deepcopy`; handles of the original do not reach them
   * ({@link Module.clearHooks} does).
   *
   * @returns a handle whose `remove()` takes the hook away
   */
  registerForwardPreHook<M extends Module>(
    this: M,
    hook: ForwardPreHook<M>,
    options?: HookOptions,
  ): RemovableHook {
    return addHook(this, 'forwardPre', hook, options);
  }

  /**
   * Calls `hook(module, inputs, output)` after each `forward`; what it returns, unless undefined
   * or null, takes the place of the output, and must be of its kind: a tensor for a tensor. See {@link Module.registerForwardPreHook}.
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
   * as `register_full_backward_hook`: one gradient for each argument and each result of `forward`,
   * null for those without. An array it returns takes the place of `gradInputs`. If no argument
   * needs a gradient (ids, say), the hook is called with nulls once the outputs' gradients are known.
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

  /** Takes all hooks of this module away; those of submodules stay. */
  clearHooks(): this {
    clearHooks(this);
    return this;
  }

  // ---- moving and copying ----

  /**
   * Moves parameters, buffers and gradients to a device and converts the floating ones to a
   * dtype. Every Parameter stays the same object, so optimizers keep working on it (their state
   * does not move along: make the optimizer after, or load its state again).
   * On a failure (no such device, no memory) nothing has changed.
   *
   * `to({ device, dtype })`, `to('cuda:0')`, `to('bfloat16')`, `to('cuda:0', 'bfloat16')` or
   * `to(tensor)` for that tensor's device and dtype.
   *
   * @throws TypeError for a device or dtype that is none; RangeError for the number of a GPU that is
   *   not there; TorchError ERR_CUDA_UNAVAILABLE
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
   * `to('cuda')`, or to the GPU of a number.
   * @throws TorchError ERR_CUDA_UNAVAILABLE; TypeError, RangeError for what is no number of a GPU
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
   * A deep copy that shares no memory with this module. Whatever is shared inside (modules,
   * parameters, their memory) is shared inside the copy; modes, frozen parameters and hooks are
   * copied, gradients, graphs and stored results are not.
   * Functions and objects of classes unknown here are shared, so a function stored on the module
   * must not use the module itself.
   *
   * @throws TypeError for a module that is inside itself
   */
  clone(): this {
    return copyModule(this);
  }

  // ---- state ----

  /**
   * The state by name, in PyTorch's order, with PyTorch's names for the classes of this package.
   * Values are views on the live parameters and persistent buffers, without gradient: they
   * change with training, and writing to them changes the module. Shared parameters are listed
   * under each of their names, as the same tensor.
   *
   * @param options `prefix`: comes before every name, such as `'model.'`. `keepVars`: true gives
   *   the Parameters and Buffers themselves; default false
   * @throws TypeError for two things under one name, for modules, parameters or buffers hidden in
   *   plain collections or replaced by something else, and for a module that is inside itself
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
   * A derived buffer ({@link Module.deriveBuffer}) of another length is no error: its values stay
   * this module's, after a check that the given ones follow the same formula.
   *
   * @param state a Map or plain object from names to tensors
   * @param options `strict`: default true, missing and unexpected keys are errors; wrong shapes
   *   and a state dict without a single weight of the module always are. `stripPrefix`: a prefix such as
   *   `'module.'` to take off the keys. `wrappedIn`: the key under which the state dict sits
   * @returns the keys missing in `state` and those the module does not have (`strict: false`)
   * @throws StateDictError listing missing, unexpected and wrongly shaped keys
   */
  loadStateDict(state: StateSource, options: LoadStateOptions = {}): LoadStateResult {
    return loadStateInto(this, state, options, deriveBufferOf);
  }

  /**
   * Frees the memory of all parameters, gradients and buffers; the module is of no use after.
   * A class that keeps more overrides this; it is asked wherever it is inside of another module.
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

/** Keeps the first pair of each value. */
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

/** The module that a path's last name belongs to, and that name. */
function ownerOf(module: Module, owner: string, path: string): [Module, string] {
  const names = splitPath(owner, path);
  return [module.getSubmodule(names.slice(0, -1).join('.')), names.at(-1) ?? ''];
}
