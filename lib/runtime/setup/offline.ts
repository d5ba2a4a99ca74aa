/** Instructions for machines without a network, or that cannot download a wheel. */
import { libtorchVersion } from '../package.js';
import { ownPlatform } from '../native/platform.js';

/** The requirement to pass to pip. */
export function torchRequirement(variant: 'cpu' | 'cuda'): string {
  // With `==`, a CPU-only build takes precedence if the index has one. `===` matches only the build
  // without a suffix, which is the CUDA build.
  return `torch${variant === 'cpu' ? '==' : '==='}${libtorchVersion}`;
}

/** No Python code of the wheel is used, so a wheel for any Python version works. */
export function anyPython(): readonly string[] {
  const platforms = ownPlatform.system.pipTags.map((tag) => `--platform=${tag}`);
  return ['--python-version=3.12', ...platforms];
}

/** The exact commands for another machine and for this one. */
export function offlineInstructions(variant: 'cpu' | 'cuda'): string {
  const cuda = variant === 'cuda' ? '--cuda ' : '';
  const platform = anyPython().join(' ');
  return (
    'If this machine has no network, run this on one that has, with any Python 3 (about 3 GB):\n' +
    `  python3 -m pip download --only-binary=:all: ${platform} --dest libtorch-wheels '${torchRequirement(variant)}'\n` +
    'copy the folder libtorch-wheels to this machine, and run here:\n' +
    `  npx torchformer setup ${cuda}--from libtorch-wheels\n` +
    `An unpacked libtorch ${libtorchVersion} also works: --from <folder>, or TORCHFORMER_LIBTORCH=<folder>.`
  );
}
