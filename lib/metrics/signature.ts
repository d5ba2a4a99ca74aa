import { packageVersion } from '../runtime/package.js';

/** The version of sacrebleu that all scores are compared with. */
export const sacrebleuVersion = '2.6.0';

/**
 * A signature in the form of sacrebleu: `nrefs:1|case:mixed|…|version:2.6.0|torchformer:0.1.0`.
 *
 * @param references references of each sentence; `'var'`: not the same number for all
 */
export function signatureOf(
  references: number | 'var',
  settings: readonly (readonly [string, string | number])[],
): string {
  return [
    ['nrefs', references],
    ...settings,
    ['version', sacrebleuVersion],
    ['torchformer', packageVersion()],
  ]
    .map(([name, value]) => `${name}:${value}`)
    .join('|');
}

/** `yes` or `no`, as signatures have it. */
export function yesOrNo(value: boolean): 'yes' | 'no' {
  return value ? 'yes' : 'no';
}
