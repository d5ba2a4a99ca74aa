/** The interface of the native addon, with {@link Tensor} as its tensor type. */
import type * as addon from '../runtime/native/nativeAddon.js';
import type { Tensor } from './tensor.js';

export type { BoundOp, CallFrame, FrameCall, NativeDType } from '../runtime/native/nativeAddon.js';

export type BackwardOptions = addon.BackwardOptions<Tensor>;
export type GradientCallback = addon.GradientCallback<Tensor>;
export type NativeAddon = addon.NativeAddon<Tensor>;
