/** Where the package's own native files are: built here, or in the platform's npm package. */
import bindings from 'bindings';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { TorchError } from './errors.js';
import { addonPackage, packageRoot, resolvePackage } from './package.js';

export interface AddonFiles {
  /** torchformer.node, linked against libtorch. */
  readonly addon: string;
  /** torchformer_bootstrap.node of the same build. */
  readonly bootstrap: string;
}

/**
 * A build made here wins over the npm package: who builds wants to run what was built.
 *
 * @throws TorchError ERR_NATIVE_LOAD naming the places when there is no addon
 */
export function findAddon(): AddonFiles {
  const attempts: string[] = [];
  const local = findLocalBuild();
  if (typeof local === 'string') {
    const problem = missingPart(dirname(local));
    if (problem === null) return filesIn(dirname(local));
    attempts.push(`local build ${dirname(local)}: ${problem}`);
  } else {
    attempts.push(`local build in ${join(packageRoot, 'build')}: not built`);
  }

  const folder = resolvePackage(addonPackage);
  const problem = folder === null ? 'not installed' : missingPart(folder);
  if (folder !== null && problem === null) return filesIn(folder);
  attempts.push(`npm package ${addonPackage}: ${problem}`);

  throw new TorchError(
    'ERR_NATIVE_LOAD',
    `the native addon of torchformer was not found. Looked for:\n  ${attempts.join('\n  ')}\n` +
      `In a checkout, run \`npm run build\` in ${packageRoot}. ` +
      `Otherwise install the package again on this machine (${process.platform} ${process.arch}).`,
  );
}

/** The path of the addon that a build in this folder left, null when there is none. */
function findLocalBuild(): string | null {
  try {
    // With `path` it loads nothing; the typings know only the loading form.
    const options = { bindings: 'torchformer.node', module_root: packageRoot, path: true };
    return bindings(options) as string;
  } catch {
    return null;
  }
}

function filesIn(folder: string): AddonFiles {
  return {
    addon: join(folder, 'torchformer.node'),
    bootstrap: join(folder, 'torchformer_bootstrap.node'),
  };
}

function missingPart(folder: string): string | null {
  const files = filesIn(folder);
  for (const file of [files.addon, files.bootstrap]) {
    if (!existsSync(file)) return `has no ${file}`;
  }
  return null;
}
