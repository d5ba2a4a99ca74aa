/** The choice of a norm as plain JSON, as layers and `makeModel` take it. */
import { checkChoice, checkOptions, checkPositive, orDefault } from '../../runtime/arguments.js';
import { LayerNorm, normNames } from './layerNorm.js';
import type { NormNames } from './layerNorm.js';
import { RMSNorm } from './rmsNorm.js';

/** The norms that layers can have. */
export type Norm = LayerNorm | RMSNorm;

/** Which norm; the defaults are seed 001's. `std`, `epsPlace` and `names` are for `'layer'` only. */
export interface NormOptions {
  /** {@link LayerNorm} (default) or {@link RMSNorm} */
  kind?: 'layer' | 'rms';
  /**
   * the standard deviation: its variance is divided by the number of features (`'population'`,
   * default) or by one less (`'sample'`)
   */
  std?: 'population' | 'sample';
  /** keeps rows of equal values finite; default 1e-6 (seeds 000 and 001; PyTorch's is 1e-5) */
  eps?: number;
  /** eps under the root, beside the variance (`'inside'`, default), or added to the deviation */
  epsPlace?: 'inside' | 'outside';
  /** names in state dicts; default `'a_2/b_2'` */
  names?: NormNames;
}

/** {@link NormOptions} with every default filled in. */
export type NormConfig =
  | {
      /** {@link LayerNorm} */
      readonly kind: 'layer';
      /** divisor of the variance: the number of features, or one less */
      readonly std: 'population' | 'sample';
      /** keeps rows of equal values finite */
      readonly eps: number;
      /** eps under the root, or added to the deviation */
      readonly epsPlace: 'inside' | 'outside';
      /** names in state dicts */
      readonly names: NormNames;
    }
  | {
      /** {@link RMSNorm} */
      readonly kind: 'rms';
      /** added to the mean square, under the root */
      readonly eps: number;
    };

/**
 * Checks a choice of norm and fills in its defaults.
 *
 * @throws TypeError for unknown options and values, and for options that RMSNorm does not have;
 *   RangeError for eps that is not above 0
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
        `${owner}: norm.${name} is for norm.kind 'layer'; RMSNorm has only eps, and one parameter, "weight"`,
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
 * Makes the norm that was chosen.
 *
 * @param features size of the dimension it normalizes
 * @throws RangeError for the sample deviation of a single feature
 */
export function makeNorm(features: number, norm: NormConfig): Norm {
  if (norm.kind === 'rms') return new RMSNorm(features, { eps: norm.eps });
  const { std, eps, epsPlace, names } = norm;
  return new LayerNorm(features, { std, eps, epsPlace, names });
}
