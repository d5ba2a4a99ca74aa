/** Where the package's own native files are: built here, or in the platform's npm package. */
import bindings from 'bindings';
import { existsSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { TorchError } from '../errors.js';
import { nativeFileProblem } from './nativeFile.js';
import { addonPackage, packageRoot, readManifest, resolvePackage } from '../package.js';
import { ownPlatform, platforms, unsupportedSystem } from './platform.js';
import { version } from '../version.js';

export interface AddonFiles {
  /** torchformer.node, linked against libtorch. */
  readonly addon: string;
  /** torchformer_bootstrap.node of the same build. */
  readonly bootstrap: string;
}

/** One place, why it does not do, and what can be done about it. */
interface Failure {
  readonly place: string;
  readonly problem: string;
  readonly fix: string;
  /** Nothing is there at all. */
  readonly missing?: true;
}

/** The files, or the error that there are none and the one thing to do about it. */
export type AddonSearch =
  | { readonly files: AddonFiles }
  | { readonly files: null; readonly error: TorchError; readonly advice: string };

/**
 * A build made here wins over the npm package: who builds wants to run what was built. Files that
 * are cut off or for another processor are passed over.
 */
export function searchAddon(): AddonSearch {
  const failures: Failure[] = [];
  const named = process.env['TORCHFORMER_ADDON'] ?? '';
  const places = named === '' ? [lookAtLocalBuild, lookAtPackage] : [() => lookAtFolder(named)];
  for (const look of places) {
    const result = look();
    if ('addon' in result) return { files: result };
    failures.push(result);
  }
  return { files: null, error: notFound(failures), advice: mainFix(failures) };
}

/**
 * The files that {@link searchAddon} finds.
 *
 * @throws TorchError ERR_NATIVE_LOAD naming the places, each with its cause and the fix
 */
export function findAddon(): AddonFiles {
  const search = searchAddon();
  if (search.files === null) throw search.error;
  return search.files;
}

/** What to do about files that are there and do not load. */
export function addonFix({ addon }: AddonFiles): string {
  const folder = dirname(addon);
  if (process.env['TORCHFORMER_ADDON']) return namedFix;
  return folder.startsWith(join(packageRoot, 'build') + sep) ? buildFix : replaceFix(folder);
}

/** What is there and broken comes before what is not there: most have no local build. */
function mainFix(failures: readonly Failure[]): string {
  const broken = failures.find(({ missing }) => missing !== true);
  const fixes = failures.map(({ fix }) => fix);
  return broken?.fix ?? fixes.reverse().join(' ');
}

function notFound(failures: readonly Failure[]): TorchError {
  const unsupported = unsupportedSystem();
  if (unsupported !== null) return new TorchError('ERR_NATIVE_LOAD', unsupported);
  const lines = failures.map(({ place, problem, fix }) => `  ${place}: ${problem}\n    ${fix}`);
  return new TorchError(
    'ERR_NATIVE_LOAD',
    `no native addon of torchformer ${version} can be used. Looked at:\n${lines.join('\n')}`,
  );
}

const buildFix = `In a checkout, run \`npm run build\` in ${packageRoot}.`;
const namedFix = 'Set TORCHFORMER_ADDON to a folder with a build, or unset it.';

/** As long as the folder is there, npm says that all is up to date. */
function replaceFix(folder: string): string {
  return `Remove ${folder} and run \`npm install\` again on this machine.`;
}

function lookAtLocalBuild(): AddonFiles | Failure {
  const fix = buildFix;
  const local = findLocalBuild();
  if (local === null) {
    const place = `local build in ${join(packageRoot, 'build')}`;
    return { place, problem: 'not built', fix, missing: true };
  }
  const folder = dirname(local);
  const problem = problemOf(folder);
  return problem === null ? filesIn(folder) : { place: `local build ${folder}`, problem, fix };
}

/** The folder that the user named; a wish, so nothing else is looked at. */
function lookAtFolder(folder: string): AddonFiles | Failure {
  const problem = problemOf(folder);
  if (problem === null) return filesIn(folder);
  return { place: `TORCHFORMER_ADDON=${folder}`, problem, fix: namedFix };
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

function lookAtPackage(): AddonFiles | Failure {
  const place = `npm package ${addonPackage}`;
  const folder = resolvePackage(addonPackage);
  if (folder === null) {
    return { place, problem: 'not installed', fix: howToInstall(), missing: true };
  }

  // npm may leave out the right version without a word; then another one higher up is found.
  const found = readManifest(folder)?.version;
  if (found !== version) {
    return {
      place: `${place} ${folder}`,
      problem: `is version ${found ?? 'unknown'}, and torchformer is ${version}`,
      fix:
        `The two must be of one version: remove ${folder} and run ` +
        `\`npm install torchformer@${version}\` again, without an ` +
        'override for the platform package; if that does not help, remove node_modules and the ' +
        'lock file first.',
    };
  }
  const problem = problemOf(folder);
  if (problem === null) return filesIn(folder);
  return { place: `${place} ${folder}`, problem, fix: replaceFix(folder) };
}

function howToInstall(): string {
  if (ownPlatform.released) {
    return (
      `Run \`npm install --include=optional torchformer@${version}\` on this machine; when ` +
      'npm says "up to date", remove node_modules and the lock file first. It is left out by ' +
      '--omit=optional, and by a lock file or node_modules of another kind of machine.'
    );
  }
  const released = platforms.filter((one) => one.released).map(({ title }) => title);
  return `There is none for ${ownPlatform.title}, only for ${released.join(', ')}.`;
}

function filesIn(folder: string): AddonFiles {
  return {
    addon: join(folder, 'torchformer.node'),
    bootstrap: join(folder, 'torchformer_bootstrap.node'),
  };
}

function problemOf(folder: string): string | null {
  const files = filesIn(folder);
  for (const file of [files.bootstrap, files.addon]) {
    const problem = existsSync(file) ? nativeFileProblem(file) : `has no ${file}`;
    if (problem !== null) return problem;
  }
  return null;
}
