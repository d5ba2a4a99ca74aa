import { checkOptions, describe } from '../runtime/options.js';
import { native } from '../tensor/dispatch.js';
import { noGrad } from '../tensor/autograd.js';
import { tidy } from '../tensor/scope.js';
import type { Device } from '../tensor/device.js';
import { isFloatingPoint } from '../tensor/dtype.js';
import type { DType } from '../tensor/dtype.js';
import type { Tensor } from '../tensor/tensor.js';
import { copyModule } from './copyModule.js';
import { describeModule } from './describeModule.js';
import { loadStateInto } from './loadState.js';
import type { LoadStateOptions, LoadStateResult, StateSource } from './loadState.js';
import type { Buffer, Parameter } from './parameter.js';
import { mergedStateNames, moduleBrand, registeredIn } from './registration.js';

/** Where a module's tensors go: `module.to({ device: 'cuda:0', dtype: 'bfloat16' })`. */
export interface ModuleTarget {
  /** `'cpu'`, `'cuda'`, `'cuda:1'`; default: each tensor stays where it is */
  device?: Device;
  /** a floating dtype; integer and bool buffers keep theirs; default: unchanged */
  dtype?: DType;
}

/** What {@link Module.deriveBuffer} is asked for. */
export interface BufferForm {
  readonly shape: readonly number[];
  readonly dtype: DType;
  readonly device: Device;
}

/** A module from one tensor to one tensor, such as the members of {@link Sequential}. */
export type TensorModule = Module & { forward(input: Tensor): Tensor };

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
  /**
   * Names in state dicts where they differ from the property: `{ selfAttn: 'self_attn' }`.
   * Entries of base classes hold for subclasses too.
   */
  static readonly stateNames: Readonly<Record<string, string>> = {};

  /** Properties with results of the last forward, which {@link Module.clone} sets to null. */
  static readonly transientNames: readonly string[] = [];

  /** True in training mode (the initial one): dropout is active. Set by `train()` and `eval()`. */
  training = true;

  /** @internal */
  get [moduleBrand](): true {
    return true;
  }

  /**
   * Computes the module's result. Subclasses declare their own arguments and result.
   * @throws TypeError when the class has none
   */
  forward(..._inputs: never[]): unknown {
    throw new TypeError(`${this.constructor.name} has no forward method`);
  }

  /** The name in state dicts of a property; {@link Module.stateNames} decides unless overridden. */
  stateNameOf(property: string): string {
    return mergedStateNames(this.constructor).get(property) ?? property;
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

  // ---- what is registered ----

  /** This module and all below it, parents first, each once. */
  modules(): Module[] {
    return this.namedModules().map(([, module]) => module);
  }

  /** As {@link Module.modules}, with dotted names; this module's own name is `''`. */
  namedModules(): [string, Module][] {
    const found = new Map<Module, string>();
    const visit = (module: Module, name: string) => {
      if (found.has(module)) return;
      found.set(module, name);
      for (const child of registeredIn(module).children)
        visit(child.value, joined(name, child.name));
    };
    visit(this, '');
    return [...found].map(([module, name]) => [name, module]);
  }

  /** The direct submodules, each once. */
  children(): Module[] {
    return this.namedChildren().map(([, child]) => child);
  }

  /** The direct submodules with their names, each once. */
  namedChildren(): [string, Module][] {
    return unique(registeredIn(this).children.map(({ name, value }) => [name, value]));
  }

  /** All parameters, shared ones once. */
  parameters(): Parameter[] {
    return this.namedParameters().map(([, parameter]) => parameter);
  }

  /** All parameters under their names in the state dict, shared ones once (the first name). */
  namedParameters(): [string, Parameter][] {
    return unique(
      this.namedModules().flatMap(([prefix, module]) =>
        registeredIn(module).parameters.map(({ name, value }): [string, Parameter] => [
          joined(prefix, name),
          value,
        ]),
      ),
    );
  }

  /** All buffers, shared ones once. */
  buffers(): Buffer[] {
    return this.namedBuffers().map(([, buffer]) => buffer);
  }

  /** All buffers under their names in the state dict, shared ones once. */
  namedBuffers(): [string, Buffer][] {
    return unique(
      this.namedModules().flatMap(([prefix, module]) =>
        registeredIn(module).buffers.map(({ name, value }): [string, Buffer] => [
          joined(prefix, name),
          value,
        ]),
      ),
    );
  }

  /** Number of elements in all parameters, shared ones counted once. */
  parameterCount(options: { trainableOnly?: boolean } = {}): number {
    checkOptions('parameterCount', options, ['trainableOnly']);
    return this.parameters()
      .filter((parameter) => options.trainableOnly !== true || parameter.requiresGrad)
      .reduce((sum, parameter) => sum + parameter.numel, 0);
  }

  // ---- modes ----

  /** Sets training mode here and in all submodules. */
  train(mode = true): this {
    if (typeof mode !== 'boolean') {
      throw new TypeError(`train: mode must be a boolean, got ${describe(mode)}`);
    }
    for (const module of this.modules()) module.training = mode;
    return this;
  }

  /** Sets evaluation mode here and in all submodules: no dropout. */
  eval(): this {
    return this.train(false);
  }

  /** Freezes (false) or thaws all parameters. */
  requiresGrad_(requiresGrad = true): this {
    for (const parameter of this.parameters()) parameter.requiresGrad = requiresGrad;
    return this;
  }

  /** Drops all gradients. */
  zeroGrad(): void {
    for (const parameter of this.parameters()) parameter.grad = null;
  }

  /** Calls `visit` with every submodule, children first, and with this module last. */
  apply(visit: (module: Module) => void): this {
    for (const child of this.children()) child.apply(visit);
    visit(this);
    return this;
  }

  // ---- moving and copying ----

  /**
   * Moves parameters, buffers and gradients to a device and converts the floating ones to a
   * dtype. Every Parameter stays the same object, so optimizers keep working on it (their state
   * does not move along: make the optimizer after, or load its state again).
   * On a failure (no such device, no memory) nothing has changed.
   */
  to(target: ModuleTarget): this {
    checkOptions('Module.to', target, ['device', 'dtype']);
    if (target.dtype !== undefined && !floatingDTypes.includes(target.dtype)) {
      throw new TypeError(
        `Module.to: dtype must be one of ${floatingDTypes.join(', ')}, got ${describe(target.dtype)}`,
      );
    }
    tidy(() =>
      noGrad(() => {
        const swaps = this.conversions(target);
        for (const swap of swaps) swap();
      }),
    );
    return this;
  }

  /** Computes all new values before the first old one goes. */
  private conversions(target: ModuleTarget): (() => void)[] {
    const swaps = new Map<Tensor, () => void>();
    for (const module of this.modules()) {
      const { parameters, buffers } = registeredIn(module);
      for (const { value } of parameters) {
        if (swaps.has(value)) continue;
        const data = converted(value, target);
        const grad = value.grad;
        const newGrad = grad === null ? null : converted(grad, target);
        swaps.set(value, () => {
          if (data === value) return;
          // A gradient of another dtype or device than its parameter is refused by autograd.
          value.grad = null;
          native().setData(value, data);
          value.grad = newGrad;
        });
      }
      for (const { property, value } of buffers) {
        if (swaps.has(value)) continue;
        let data = converted(value, target);
        if (data !== value) {
          data = module.deriveBuffer(property, formOf(data)) ?? data;
        }
        swaps.set(value, () => {
          if (data !== value) native().setData(value, data);
        });
      }
    }
    return [...swaps.values()];
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
   * A deep copy that shares no memory with this module. Parameters that are shared inside stay
   * shared inside the copy; gradients, graphs and stored results are not carried over.
   * Functions and objects of classes unknown here are shared, so a function stored on the module
   * must not use the module itself.
   */
  clone(): this {
    return copyModule(this);
  }

  // ---- state ----

  /**
   * The state by name, in PyTorch's order, with PyTorch's names for the classes of this package.
   * Values are views on the live parameters and persistent buffers, without gradient: they
   * change with training, and writing to them changes the module. Shared parameters are listed
   * under each of their names.
   */
  stateDict(): Map<string, Tensor> {
    const state = new Map<string, Tensor>();
    const collect = (module: Module, prefix: string) => {
      const { parameters, buffers, children } = registeredIn(module);
      for (const { name, value } of parameters) state.set(joined(prefix, name), value.detach());
      for (const { name, value } of buffers) {
        if (value.persistent) state.set(joined(prefix, name), value.detach());
      }
      for (const { name, value } of children) collect(value, joined(prefix, name));
    };
    collect(this, '');
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
   *   and a state without any matching key always are. `stripPrefix`: a prefix such as
   *   `'module.'` to take off the keys. `wrappedIn`: the key under which the state dict sits
   * @returns the keys missing in `state` and those the module does not have (`strict: false`)
   * @throws StateDictError listing missing, unexpected and wrongly shaped keys
   */
  loadStateDict(state: StateSource, options: LoadStateOptions = {}): LoadStateResult {
    return loadStateInto(this, state, options, (owner, property, form) =>
      owner.deriveBuffer(property, form),
    );
  }

  /** Frees the memory of all parameters, gradients and buffers; the module is of no use after. */
  dispose(): void {
    for (const tensor of [...this.parameters(), ...this.buffers()]) tensor.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  // ---- printing ----

  /** The tree of modules, as PyTorch prints it. */
  toString(): string {
    return describeModule(this, (module) => module.extraDescription());
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }
}

const floatingDTypes: readonly string[] = ['float32', 'float64', 'float16', 'bfloat16'];

/** The tensor on the target; the very same object when nothing changes. */
function converted(tensor: Tensor, target: ModuleTarget): Tensor {
  const dtype = isFloatingPoint(tensor.dtype) ? (target.dtype ?? tensor.dtype) : tensor.dtype;
  const device = target.device ?? tensor.device;
  if (dtype === tensor.dtype && device === tensor.device) return tensor;
  return tensor.detach().to({ dtype, device });
}

function formOf({ shape, dtype, device }: Tensor): BufferForm {
  return { shape, dtype, device };
}

function joined(prefix: string, name: string): string {
  return prefix === '' ? name : `${prefix}.${name}`;
}

/** Keeps the first pair of each value. */
function unique<T>(pairs: [string, T][]): [string, T][] {
  const seen = new Set<T>();
  return pairs.filter(([, value]) => !seen.has(value) && seen.add(value));
}
