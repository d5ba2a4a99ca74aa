import { checkBoolean, checkOptions, describe } from '../../runtime/arguments.js';
import { noGrad } from '../../tensor/autograd.js';
import { checkDevice, deviceNames } from '../../tensor/device.js';
import type { Device, DeviceChoice } from '../../tensor/device.js';
import { native } from '../../tensor/dispatch.js';
import { isFloatingPoint } from '../../tensor/dtype.js';
import type { DType } from '../../tensor/dtype.js';
import { tidy } from '../../tensor/scope.js';
import { Tensor } from '../../tensor/tensor.js';
import type { DeriveBuffer } from './loadState.js';
import type { Module } from './module.js';
import { placesBelow } from './registration.js';

/** The dtypes that parameters can have. */
export type FloatingDType = 'float32' | 'float64' | 'float16' | 'bfloat16';

/** Target of `Module.to`: `module.to({ device: 'cuda:0', dtype: 'bfloat16' })`. */
export interface ModuleTarget {
  /** `'cpu'`, `'cuda'`, `'cuda:1'`, `'auto'`; default: each tensor stays where it is */
  device?: DeviceChoice;
  /** a floating-point dtype; integer and bool buffers keep theirs; default: unchanged */
  dtype?: DType;
  /** as for {@link Tensor.to}; default false */
  nonBlocking?: boolean;
}

/** A target whose device exists. */
export type CheckedTarget = Omit<ModuleTarget, 'device'> & { readonly device?: Device };

const floatingDTypes: readonly string[] = ['float32', 'float64', 'float16', 'bfloat16'];
const targets =
  `a device (${deviceNames}), ` +
  `a floating dtype (${floatingDTypes.map((name) => `'${name}'`).join(', ')}), ` +
  '{ device, dtype } or a Tensor with both';

/**
 * Normalizes the arguments of `Module.to`: a target; a device, a dtype, or both; or a tensor whose
 * device and dtype are used.
 *
 * @throws TypeError for anything else
 */
export function checkedTarget(
  first: ModuleTarget | DeviceChoice | FloatingDType | Tensor,
  second?: FloatingDType,
): CheckedTarget {
  const target = asTarget(first, second);
  checkOptions('Module.to', target, ['device', 'dtype', 'nonBlocking']);
  const { device, dtype, nonBlocking } = target;
  if (dtype !== undefined && !floatingDTypes.includes(dtype)) {
    throw new TypeError(
      `Module.to: dtype must be one of ${floatingDTypes.join(', ')}, got ${describe(dtype)}`,
    );
  }
  checkBoolean('Module.to', 'nonBlocking', nonBlocking ?? false);
  const rest = { ...(dtype && { dtype }), ...(nonBlocking && { nonBlocking }) };
  return device === undefined
    ? rest
    : { ...rest, device: checkDevice('Module.to', 'device', device) };
}

function asTarget(first: unknown, second?: FloatingDType): ModuleTarget {
  const dtype = second === undefined ? {} : { dtype: second };
  if (first instanceof Tensor) return { device: first.device, dtype: first.dtype, ...dtype };
  if (typeof first === 'string') {
    if (!floatingDTypes.includes(first)) {
      if (!/^(auto|cpu|cuda)/.test(first)) throw misfit(first);
      return { device: first as DeviceChoice, ...dtype };
    }
    if (second === undefined) return { dtype: first as DType };
    throw new TypeError(
      `Module.to: got two dtypes, '${first}' and '${second}'; the first argument is the device`,
    );
  }
  if (second === undefined) {
    if (typeof first !== 'object' || first === null) throw misfit(first);
    return first;
  }
  throw new TypeError(
    `Module.to: if a dtype follows, the first argument must be a device, got ${describe(first)}`,
  );
}

function misfit(first: unknown): TypeError {
  return new TypeError(`Module.to: target must be ${targets}, got ${describe(first)}`);
}

/** Implements `Module.to`: converts all tensors or, if it fails, none. */
export function moveModule(module: Module, target: CheckedTarget, derive: DeriveBuffer): void {
  tidy(() =>
    noGrad(() => {
      const swaps = conversions(module, target, derive);
      for (const swap of swaps) swap();
    }),
  );
}

/** Computes all new values before any old value is freed. */
function conversions(root: Module, target: CheckedTarget, derive: DeriveBuffer): (() => void)[] {
  const swaps = new Map<Tensor, () => void>();
  for (const { module, registered } of placesBelow(root)) {
    for (const { value } of registered.parameters) {
      if (swaps.has(value)) continue;
      const data = converted(value, target);
      const grad = value.grad;
      const newGrad = grad === null ? null : converted(grad, target);
      swaps.set(value, () => {
        if (data === value) return;
        // Autograd rejects a gradient whose dtype or device differs from the parameter's.
        value.grad = null;
        native().setData(value, data);
        value.grad = newGrad;
      });
    }
    for (const { property, value } of registered.buffers) {
      if (swaps.has(value)) continue;
      let data = converted(value, target);
      if (data !== value) {
        const { shape, dtype, device } = data;
        data = derive(module, property, { shape, dtype, device }) ?? data;
      }
      swaps.set(value, () => {
        if (data !== value) native().setData(value, data);
      });
    }
  }
  return [...swaps.values()];
}

/** The tensor converted to the target; the same object if nothing changes. */
function converted(tensor: Tensor, target: CheckedTarget): Tensor {
  const dtype = isFloatingPoint(tensor.dtype) ? (target.dtype ?? tensor.dtype) : tensor.dtype;
  const device = target.device ?? tensor.device;
  if (dtype === tensor.dtype && device === tensor.device) return tensor;
  return tensor.detach().to({ dtype, device, nonBlocking: target.nonBlocking ?? false });
}
