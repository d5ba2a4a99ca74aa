/** How to set up a machine that has no network, or none of the means to fetch a wheel. */
import { libtorchVersion } from '../package.js';
import { ownPlatform } from '../native/platform.js';

/** What pip is asked for. */
export function torchRequirement(variant: 'cpu' | 'cuda'): string {
  // Two signs: a build for the CPU alone comes first where the index has one. Three: only the
  // build without a suffix, which is the CUDA one.
  return `torch${variant === 'cpu' ? '==' : '==='}${libtorchVersion}`;
}

/** Our use of the wheel runs no Python, so one for any Python does. */
export function anyPython(): readonly string[] {
  const platforms = ownPlatform.system.pipTags.map((tag) => `--platform=${tag}`);
  return ['--python-version=3.12', ...platforms];
}

/** Exact commands, for another machine and for this one. */
export function offlineInstructions(variant: 'cpu' | 'cuda'): string {
  const cuda = variant === 'cuda' ? '--cuda ' : '';
  const platform = anyPython().join(' ');
  return (
    'Without a network here, run on a machine that has one, with any Python 3 (about 3 GB come):\n' +
    `  python3 -m pip download --only-binary=:all: ${platform} --dest libtorch-wheels '${torchRequirement(variant)}'\n` +
    'bring the folder libtorch-wheels to this machine, and run here:\n' +
    `  npx torchformer setup ${cuda}--from libtorch-wheels\n` +
    `An unpacked libtorch ${libtorchVersion} does as well: --from <folder>, or TORCHFORMER_LIBTORCH=<folder>.`
  );
}
