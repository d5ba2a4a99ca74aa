/** The choice of a norm as plain JSON, for layers and `makeModel`. */
import { checkChoice, checkOptions, checkPositive, orDefault } from '../../runtime/arguments.js';
import { LayerNorm, normNames } from './layerNorm.js';
import type { NormNames } from './layerNorm.js';
import { RMSNorm } from './rmsNorm.js';

/** The norms that layers can use. */
export type Norm = LayerNorm | RMSNorm;

/** The norm; the defaults are seed 001's. `std`, `epsPlace` and `names` are for `'layer'` only. */
export interface NormOptions {
  /** {@link LayerNorm} (default) or {@link RMSNorm} */
  kind?: 'layer' | 'rms';
  /**
   * standard deviation: the variance is divided by the number of features (`'population'`,
   * default) or by that number minus 1 (`'sample'`)
   */
  std?: 'population' | 'sample';
  /** for numerical stability; default 1e-6 (seeds 000 and 001; PyTorch's is 1e-5) */
  eps?: number;
  /** eps added to the variance (`'inside'`, default) or to the standard deviation (`'outside'`) */
  epsPlace?: 'inside' | 'outside';
  /** names in state dicts; default `'a_2/b_2'` */
  names?: NormNames;
}

/** {@link NormOptions} with all defaults filled in. */
export type NormConfig =
  | {
      /** {@link LayerNorm} */
      readonly kind: 'layer';
      /** divisor of the variance: the number of features, or that number minus 1 */
      readonly std: 'population' | 'sample';
      /** for numerical stability */
      readonly eps: number;
      /** eps added to the variance or to the standard deviation */
      readonly epsPlace: 'inside' | 'outside';
      /** names in state dicts */
      readonly names: NormNames;
    }
  | {
      /** {@link RMSNorm} */
      readonly kind: 'rms';
      /** added to the mean square */
      readonly eps: number;
    };

/**
 * Checks the options of a norm and fills in the defaults.
 *
 * @throws TypeError for unknown options and values, and for options that RMSNorm does not have;
 *   RangeError unless eps is positive
 */
export function checkedNorm(owner: string, options: NormOptions = {}): NormConfig {
  const kinds = ['layer', 'rms'] as const;
  checkOptions(`${owner} norm`, options, ['kind', 'std', 'eps', 'epsPlace', 'names']);
  const kind = checkChoice(owner, 'norm.kind', orDefault(options.kind, 'layer'), kinds);
  const eps = checkPositive(owner, 'norm.eps', orDefault(options.eps, 1e-6));
  if (kind === 'rms') {
    for (const name of ['std', 'epsPlace', 'names'] as const) {
      if (options[name] === undefined) continue;
      throw new TypeError(
        `${owner}: norm.${name} requires norm.kind 'layer'; RMSNorm has only eps, and one parameter, "weight"`,
      );
    }
    return { kind, eps };
  }
  const { std = 'population', epsPlace = 'inside', names = 'a_2/b_2' } = options;
  return {
    kind,
    std: checkChoice(owner, 'norm.std', std, ['population', 'sample']),
    eps,
    epsPlace: checkChoice(owner, 'norm.epsPlace', epsPlace, ['inside', 'outside']),
    names: checkChoice(owner, 'norm.names', names, normNames),
  };
}

/**
 * Creates the configured norm.
 *
 * @param features size of the normalized dimension
 * @throws RangeError if `std` is `'sample'` and `features` is 1
 */
export function makeNorm(features: number, norm: NormConfig): Norm {
  if (norm.kind === 'rms') return new RMSNorm(features, { eps: norm.eps });
  const { std, eps, epsPlace, names } = norm;
  return new LayerNorm(features, { std, eps, epsPlace, names });
}
