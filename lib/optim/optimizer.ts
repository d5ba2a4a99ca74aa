import { TorchError } from '../runtime/errors.js';
import { checkNonNegative, checkObject, checkOptions, describe } from '../runtime/arguments.js';
import { noGrad } from '../tensor/autograd.js';
import { formatShape } from '../tensor/check.js';
import { callTensor } from '../tensor/dispatch.js';
import { byteSize, isFloatingPoint } from '../tensor/dtype.js';
import { keep, Scope, tidy } from '../tensor/scope.js';
import { Tensor } from '../tensor/tensor.js';

/** The settings that the groups of every optimizer have. */
export interface BaseSettings {
  /** learning rate; a change takes effect at the next step */
  lr: number;
}

/** Parameters that share settings. */
export type ParameterGroup<Settings> = Settings & {
  /** leaf tensors of a floating-point dtype and any shape */
  readonly params: readonly Tensor[];
};

/** The parameters to optimize, or groups of them with their own settings. */
export type ParameterSource<Settings> =
  Iterable<Tensor> | readonly (Partial<Settings> & { params: Iterable<Tensor> })[];

/** The state of an optimizer for one parameter. */
export type ParameterState = Readonly<Record<string, Tensor>>;

/** The state of an optimizer: tensors for a safetensors file, settings for JSON. */
export interface OptimizerState<Settings> {
  /** `<index of the parameter>.<name>` to views of the live tensors */
  tensors: Map<string, Tensor>;
  /** settings of each group, with the indices of its parameters */
  groups: (Settings & { params: number[] })[];
}

/** A parameter with its gradient; their sizes have been checked. */
export interface Update {
  /** The leaf to update, in place. */
  readonly parameter: Tensor;
  /** Its gradient, of the same shape. */
  readonly gradient: Tensor;
}

/**
 * Base class of all optimizers. Parameters without a gradient are skipped. The state of a parameter
 * is created when it is first updated, and belongs to no scope.
 */
export abstract class Optimizer<Settings extends BaseSettings> {
  /** Parameters with their settings; a changed setting takes effect at the next step. */
  readonly paramGroups: readonly ParameterGroup<Settings>[];
  private readonly states = new Map<Tensor, ParameterState>();
  private readonly owner: string;

  /**
   * @param source parameters, or groups `{ params, lr, … }`
   * @param options settings of all groups that do not set their own
   * @param defaults the optimizer's default settings
   * @throws TypeError, RangeError if there are no parameters, or a tensor is given twice or is not
   *   a leaf; TypeError for this class itself, and for subclasses without its abstract methods
   */
  constructor(source: ParameterSource<Settings>, options: Partial<Settings>, defaults: Settings) {
    const owner = this.constructor.name;
    this.owner = owner;
    this.refuseWithoutMethods();
    const settings: unknown = defaults;
    if (typeof settings !== 'object' || settings === null) {
      throw new TypeError(
        `${owner}: super(…) must be given the default settings, such as { lr: 0.001 }, as its ` +
          `third argument, got ${describe(settings)}`,
      );
    }
    const valid = Object.keys(defaults);
    checkOptions(owner, options, valid);
    const seen = new Set<Tensor>();
    this.paramGroups = groupsOf(owner, source).map(({ params, ...own }) => {
      checkOptions(owner, own, valid);
      const settings = { ...defaults, ...defined(options), ...defined(own) };
      this.checkSettings(settings);
      return { ...settings, params: checkedParameters(owner, params, seen) };
    });
    if (seen.size === 0) throw new RangeError(`${owner}: there are no parameters to optimize`);
  }

  /** Checks in JavaScript that subclasses implement the abstract methods. @throws TypeError */
  private refuseWithoutMethods(): void {
    const methods = ['checkSettings', 'initialState', 'updateGroup'] as const;
    const missing = methods.filter((name) => typeof this[name] !== 'function');
    if (missing.length === 0) return;
    throw new TypeError(
      this.constructor === Optimizer
        ? 'Optimizer: this is only the base class of optimizers; use Adam, AdamW or SGD'
        : `${this.owner}: an optimizer must have the methods ${methods.join(', ')}, ` +
            `but this one lacks ${missing.join(', ')}`,
    );
  }

  /**
   * Called by the constructor and before every step.
   * @throws RangeError, TypeError for wrong settings
   */
  protected abstract checkSettings(settings: Settings): void;

  /** The initial state of a parameter. */
  protected abstract initialState(parameter: Tensor): ParameterState;

  /**
   * Updates the parameters of one group, with gradient recording disabled. If `inBackground` is
   * true, this starts the native work and returns its promises; else all work is done on return.
   */
  protected abstract updateGroup(
    group: ParameterGroup<Settings>,
    updates: readonly Update[],
    inBackground: boolean,
  ): Promise<unknown>[];

  /** The learning rate of the first group; setting it changes all groups. */
  get lr(): number {
    return (this.paramGroups[0] as ParameterGroup<Settings>).lr;
  }

  /** @throws RangeError, TypeError unless it is a finite number of at least 0 */
  set lr(value: number) {
    checkNonNegative(this.owner, 'lr', value);
    for (const group of this.paramGroups) group.lr = value;
  }

  /**
   * Updates every parameter that has a gradient.
   * @throws TypeError, RangeError before any change
   */
  step(): void {
    tidy(() => noGrad(() => void this.start(false)));
  }

  /**
   * Like {@link step}, but off the event loop. Do not use the parameters or their gradients until
   * the promise settles.
   */
  async stepAsync(): Promise<void> {
    const scope = new Scope();
    try {
      const [jobs] = scope.run(() => noGrad(() => [this.start(true)]));
      await Promise.all(jobs);
    } finally {
      scope.dispose();
    }
  }

  private start(inBackground: boolean): Promise<unknown>[] {
    // All groups are checked before the first one changes.
    const work = this.paramGroups.map((group) => {
      this.checkSettings(group);
      return { group, updates: this.updatesOf(group) };
    });
    return work.flatMap(({ group, updates }) =>
      updates.length === 0 ? [] : this.updateGroup(group, updates, inBackground),
    );
  }

  private updatesOf(group: ParameterGroup<Settings>): Update[] {
    const updates: Update[] = [];
    for (const parameter of group.params) {
      const gradient = parameter.grad;
      if (gradient === null) continue;
      checkLike(this.owner, 'a gradient', gradient, parameter);
      const state = this.states.get(parameter);
      for (const [name, tensor] of Object.entries(state ?? {})) {
        if (tensor.ndim === 0) continue;
        const shape = this.stateShape(parameter, name);
        checkLike(this.owner, `the state "${name}"`, tensor, parameter, shape);
      }
      // The fused kernels treat all of them as flat memory.
      updates.push({ parameter, gradient: this.usable(gradient, group) });
    }
    return updates;
  }

  private usable(gradient: Tensor, group: ParameterGroup<Settings>): Tensor {
    if (!gradient.isSparse) return gradient.contiguous();
    return this.takesSparse(group, gradient) ? gradient : callTensor('aten::_to_dense', gradient);
  }

  /** The shape of a tensor of the state: by default that of its parameter. */
  protected stateShape(parameter: Tensor, _name: string): readonly number[] {
    return parameter.shape;
  }

  /**
   * Whether a sparse gradient of this parameter would be used as it is, and not made dense first.
   *
   * @internal
   */
  updatesRowsOf(parameter: Tensor): boolean {
    const group = this.paramGroups.find(({ params }) => params.includes(parameter));
    return group !== undefined && this.takesSparse(group, parameter);
  }

  /** Whether `updateGroup` supports this sparse gradient; otherwise it gets a dense one. */
  protected takesSparse(_group: ParameterGroup<Settings>, _gradient: Tensor): boolean {
    return false;
  }

  /** The state of a parameter, created if it has none. */
  protected stateOf(parameter: Tensor): ParameterState {
    let state = this.states.get(parameter);
    if (state === undefined) {
      state = keep(this.initialState(parameter));
      this.states.set(parameter, state);
    }
    return state;
  }

  /** Whether the parameters of a group get a state when they are updated. */
  protected keepsState(_group: ParameterGroup<Settings>): boolean {
    return true;
  }

  /** Bytes of the state once every trainable parameter has been updated; nothing changes. */
  stateBytes(): number {
    return this.paramGroups
      .filter((group) => this.keepsState(group))
      .flatMap(({ params }) => params.filter(({ requiresGrad }) => requiresGrad))
      .reduce((sum, parameter) => sum + this.stateBytesOf(parameter), 0);
  }

  private stateBytesOf(parameter: Tensor): number {
    return tidy(() => {
      const state = this.states.get(parameter) ?? noGrad(() => this.initialState(parameter));
      return Object.values(state).reduce(
        (sum, { numel, dtype }) => sum + numel * byteSize(dtype),
        0,
      );
    });
  }

  /** Sets the gradients of all parameters to null. */
  zeroGrad(): void {
    for (const parameter of this.parameters()) {
      // Those of merged LoRA layers no longer exist.
      if (!parameter.isDisposed) parameter.grad = null;
    }
  }

  /** All parameters, in the order of the groups. */
  parameters(): Tensor[] {
    return this.paramGroups.flatMap(({ params }) => params);
  }

  /** State and settings, keyed by the indices of the parameters. */
  stateDict(): OptimizerState<Settings> {
    const tensors = new Map<string, Tensor>();
    this.parameters().forEach((parameter, index) => {
      for (const [name, tensor] of Object.entries(this.states.get(parameter) ?? {})) {
        tensors.set(`${index}.${name}`, tensor.detach());
      }
    });
    let next = 0;
    const groups = this.paramGroups.map(({ params, ...settings }) => ({
      ...(settings as unknown as Settings),
      params: params.map(() => next++),
    }));
    return { tensors, groups };
  }

  /**
   * Loads the state of an optimizer of the same kind for the same parameters. Everything is checked
   * before anything changes. The state is converted to the dtype and device of the parameters.
   *
   * @throws TorchError ERR_CHECKPOINT for different groups, names or shapes; TypeError if `state`
   *   is not the state of an optimizer
   */
  loadStateDict(state: OptimizerState<Settings>): void {
    this.checkState(state);
    const parameters = this.parameters();
    const counts = (groups: readonly { params: readonly unknown[] }[]) =>
      groups.map(({ params }) => params.length).join(', ');
    if (counts(state.groups) !== counts(this.paramGroups)) {
      throw this.misfit(
        `the groups have ${counts(this.paramGroups)} parameters, but ${counts(state.groups)} in the state`,
      );
    }
    for (const group of state.groups) {
      const { params, ...settings } = group;
      checkOptions(this.owner, settings, Object.keys(this.settingsOf(0)));
      this.checkSettings(group);
    }
    const byParameter = new Map<Tensor, Record<string, Tensor>>();
    for (const [key, tensor] of state.tensors) {
      const dot = key.indexOf('.');
      const parameter = parameters[Number(key.slice(0, dot))];
      if (dot < 0 || parameter === undefined) throw this.misfit(`"${key}" belongs to no parameter`);
      const loaded = byParameter.get(parameter) ?? {};
      loaded[key.slice(dot + 1)] = tensor;
      byParameter.set(parameter, loaded);
    }
    const fresh = tidy(() =>
      noGrad(() => new Map([...byParameter].map(([p, loaded]) => [p, this.converted(p, loaded)]))),
    );
    this.disposeState();
    for (const [parameter, loaded] of fresh) this.states.set(parameter, keep(loaded));
    state.groups.forEach(({ params, ...settings }, index) => {
      Object.assign(this.paramGroups[index] as object, settings);
    });
  }

  /** Checks the outer structure; the content is compared with the parameters later. */
  private checkState(state: OptimizerState<Settings>): void {
    const expected = 'the result of stateDict(), { tensors, groups }';
    const { tensors, groups } = checkObject(
      `${this.owner}.loadStateDict`,
      'state',
      state,
      expected,
    );
    const areGroups =
      Array.isArray(groups) &&
      groups.every((group: { params?: unknown } | null) => Array.isArray(group?.params));
    const areTensors =
      tensors instanceof Map && [...tensors.values()].every((value) => value instanceof Tensor);
    if (areGroups && areTensors) return;
    throw new TypeError(
      `${this.owner}.loadStateDict: state must be ${expected}, got ` +
        (areGroups ? `tensors as ${describe(tensors)}` : `groups as ${describe(groups)}`),
    );
  }

  private settingsOf(index: number): object {
    const { params, ...settings } = this.paramGroups[index] as ParameterGroup<Settings>;
    return settings;
  }

  /** Copies loaded tensors to a new state of this parameter. */
  private converted(parameter: Tensor, loaded: Record<string, Tensor>): ParameterState {
    const form = this.initialState(parameter);
    const names = Object.keys(form).sort().join(', ');
    if (Object.keys(loaded).sort().join(', ') !== names) {
      throw this.misfit(
        `a parameter has ${Object.keys(loaded).sort().join(', ')} instead of ${names}`,
      );
    }
    return Object.fromEntries(
      Object.entries(form).map(([name, target]) => {
        const source = loaded[name] as Tensor;
        if (formatShape(source.shape) !== formatShape(target.shape)) {
          throw this.misfit(
            `"${name}" is ${formatShape(source.shape)} for a parameter of ${formatShape(target.shape)}`,
          );
        }
        return [name, target.copy_(source)];
      }),
    );
  }

  private misfit(reason: string): TorchError {
    return new TorchError('ERR_CHECKPOINT', `${this.owner}.loadStateDict: ${reason}`);
  }

  /** Frees the state, but not the parameters. */
  dispose(): void {
    this.disposeState();
  }

  /** Calls {@link Optimizer.dispose} at the end of a block: `using optimizer = new Adam(…)`. */
  [Symbol.dispose](): void {
    this.dispose();
  }

  private disposeState(): void {
    for (const state of this.states.values()) {
      for (const tensor of Object.values(state)) tensor.dispose();
    }
    this.states.clear();
  }
}

function groupsOf<Settings>(
  owner: string,
  source: ParameterSource<Settings>,
): readonly { params: Iterable<Tensor> }[] {
  const items = itemsOf(`${owner}: parameters`, source);
  const isGroup = (item: unknown) =>
    typeof item === 'object' && item !== null && !(item instanceof Tensor) && 'params' in item;
  if (items.length > 0 && items.every(isGroup)) {
    return items as { params: Iterable<Tensor> }[];
  }
  return [{ params: items as Tensor[] }];
}

function itemsOf(name: string, list: unknown): unknown[] {
  if (typeof list === 'object' && list !== null && Symbol.iterator in list) {
    return [...(list as Iterable<unknown>)];
  }
  throw new TypeError(
    `${name} must be a list of tensors such as model.parameters(), got ${describe(list)}`,
  );
}

function checkedParameters(owner: string, params: Iterable<Tensor>, seen: Set<Tensor>): Tensor[] {
  return itemsOf(`${owner}: params of a group`, params).map((parameter, index) => {
    if (!(parameter instanceof Tensor)) {
      throw new TypeError(
        `${owner}: parameter ${index} must be a Tensor, got ${describe(parameter)}`,
      );
    }
    if (seen.has(parameter)) {
      throw new RangeError(
        `${owner}: parameter ${index} ${formatShape(parameter.shape)} is given twice`,
      );
    }
    seen.add(parameter);
    if (!parameter.isLeaf || !isFloatingPoint(parameter.dtype)) {
      throw new TypeError(
        `${owner}: parameter ${index} must be a floating-point leaf, not the result of a computation`,
      );
    }
    return parameter;
  });
}

/** Removes undefined values, so that they do not replace the defaults. */
function defined(options: object): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** The fused kernels do not check this: with different sizes they would read out of bounds. */
function checkLike(
  owner: string,
  what: string,
  tensor: Tensor,
  parameter: Tensor,
  shape = parameter.shape,
): void {
  const of = ({ dtype, device }: Tensor, size: readonly number[]) =>
    `${formatShape(size)} of ${dtype} on ${device}`;
  const found = of(tensor, tensor.shape);
  if (found === of(parameter, shape)) return;
  throw new TypeError(
    `${owner}: ${what} is ${found} for a parameter ${of(parameter, parameter.shape)}; ` +
      'after model.to(…), create the optimizer again, or load its state again',
  );
}
