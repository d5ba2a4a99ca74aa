import {
  checkChoice,
  checkInteger,
  checkOptions,
  checkPositive,
  orDefault,
} from '../../runtime/arguments.js';
import { ones, zeros } from '../../tensor/create.js';
import { currentResults } from '../../tensor/autocast.js';
import { callTensor, callTensors } from '../../tensor/dispatch.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { checkFeatures } from '../check.js';
import { Module } from '../module/module.js';
import { Parameter } from '../module/parameter.js';
import { rememberRegistered } from '../module/registration.js';

/** Options of {@link LayerNorm}; the defaults are seed 001's. */
export interface LayerNormOptions {
  /** for numerical stability; default 1e-6 (seeds 000 and 001; PyTorch's is 1e-5) */
  eps?: number;
  /**
   * standard deviation: the variance is divided by the number of features (`'population'`,
   * default) or by that number minus 1 (`'sample'`)
   */
  std?: 'population' | 'sample';
  /** eps added to the variance (`'inside'`, default) or to the standard deviation (`'outside'`) */
  epsPlace?: 'inside' | 'outside';
  /** names in state dicts; default `'a_2/b_2'`; `{ scale, shift }` for any other names */
  names?: NormNames | { scale: string; shift: string };
}

/** Names of a LayerNorm's scale and shift in state dicts: seed 001's, seed 000's, PyTorch's. */
export type NormNames = 'a_2/b_2' | 'k/b' | 'weight/bias';

const stateNames: Readonly<Record<NormNames, { scale: string; shift: string }>> = {
  'a_2/b_2': { scale: 'a_2', shift: 'b_2' },
  'k/b': { scale: 'k', shift: 'b' },
  'weight/bias': { scale: 'weight', shift: 'bias' },
};

/** All of {@link NormNames}. */
export const normNames = Object.keys(stateNames) as NormNames[];

/**
 * Normalizes the last dimension to mean 0 and standard deviation 1, then scales and shifts it by
 * learned vectors (Ba et al. 2016, section 3; in the paper after each residual sum, section 3.1):
 * `scale · (x - mean) / √(variance + eps) + shift`, or with eps outside
 * `scale · (x - mean) / (deviation + eps) + shift`. One native op; float16 and bfloat16 are computed
 * in float32.
 *
 * Definitions differ, and weights trained with one give wrong results with another, without error:
 *
 * | | std | epsPlace | eps | names |
 * |---|---|---|---|---|
 * | seed 001 (default) | population | inside | 1e-6 | a_2/b_2 |
 * | seed 000 | sample | outside | 1e-6 | k/b |
 * | `torch.nn.LayerNorm`, seed 002 | population | inside | 1e-5 | weight/bias |
 */
export class LayerNorm extends Module {
  static override readonly takesPackedRows: boolean = true;

  /** `[features]`, initialized to ones */
  scale: Parameter;
  /** `[features]`, initialized to zeros */
  shift: Parameter;
  /** Size of the last dimension, which is normalized. */
  readonly features: number;
  /** Added to the variance or to the standard deviation, see `epsPlace`. */
  readonly eps: number;
  /** Whether the variance is divided by the number of features or by that number minus 1. */
  readonly std: 'population' | 'sample';
  /** Whether eps is added to the variance or to the standard deviation. */
  readonly epsPlace: 'inside' | 'outside';
  private readonly names: { readonly scale: string; readonly shift: string };

  /** @throws RangeError, TypeError for an invalid size or option, such as `'sample'` with 1 feature */
  constructor(features: number, options: LayerNormOptions = {}) {
    super();
    checkOptions('LayerNorm', options, ['eps', 'std', 'epsPlace', 'names']);
    this.features = checkInteger('LayerNorm', 'features', features, 1);
    this.eps = checkPositive('LayerNorm', 'eps', orDefault(options.eps, 1e-6));
    const { std = 'population', epsPlace = 'inside', names = 'a_2/b_2' } = options;
    this.std = checkChoice('LayerNorm', 'std', std, ['population', 'sample']);
    this.epsPlace = checkChoice('LayerNorm', 'epsPlace', epsPlace, ['inside', 'outside']);
    if (this.std === 'sample' && features === 1) {
      throw new RangeError(
        "LayerNorm: features must be at least 2 for std 'sample', which divides by features - 1, got 1",
      );
    }
    this.names = checkedNames(names);
    this.scale = tidy(() => new Parameter(ones([features])));
    this.shift = tidy(() => new Parameter(zeros([features])));
    rememberRegistered(this);
  }

  override stateNameOf(property: string): string {
    if (property === 'scale' || property === 'shift') return this.names[property];
    return super.stateNameOf(property);
  }

  /**
   * @param input `[…, features]`
   * @returns the same shape
   * @throws RangeError if the last dimension is wrong; TypeError or TorchError ERR_DEVICE if dtype or
   *   device differ from the weights'
   */
  override forward(input: Tensor): Tensor {
    checkFeatures('LayerNorm', 'input', input, this.features, this.scale);
    return callTensor('torchformer::layer_norm', input, this.scale, this.shift, this.eps, {
      sample_std: this.std === 'sample',
      eps_outside: this.epsPlace === 'outside',
      results: currentResults(this.scale),
    });
  }

  /**
   * Computes residual + dropout(addend) and {@link LayerNorm.forward} of the sum in one op.
   *
   * @param residual `[…, features]`, as for `forward`
   * @param addend the same shape and dtype; or float16 or bfloat16 with a float32 residual
   * @param dropout probability of an element of `addend` to be zeroed
   * @internal
   */
  forwardOfSum(residual: Tensor, addend: Tensor, dropout: number): [sum: Tensor, normed: Tensor] {
    checkFeatures('LayerNorm', 'input', residual, this.features, this.scale);
    const { scale, shift, eps } = this;
    return callTensors('torchformer::add_norm', addend, residual, scale, shift, dropout, eps, {
      sample_std: this.std === 'sample',
      eps_outside: this.epsPlace === 'outside',
      results: currentResults(scale),
    }) as [Tensor, Tensor];
  }

  protected override extraDescription(): string {
    const dialect = [
      this.std === 'sample' ? ", std='sample'" : '',
      this.epsPlace === 'outside' ? ", epsPlace='outside'" : '',
    ];
    return `${this.features}, eps=${this.eps.toExponential()}${dialect.join('')}`;
  }
}

function checkedNames(names: NonNullable<LayerNormOptions['names']>) {
  if (typeof names !== 'object' || names === null) {
    return stateNames[checkChoice('LayerNorm', 'names', names, normNames)];
  }
  checkOptions('LayerNorm names', names, ['scale', 'shift']);
  return { ...stateNames['a_2/b_2'], ...names };
}
