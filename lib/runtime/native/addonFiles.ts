/** Locates the package's own native files: a local build, or the npm package of the platform. */
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

/** A place that was searched, why it cannot be used, and how to fix that. */
interface Failure {
  readonly place: string;
  readonly problem: string;
  readonly fix: string;
  /** Whether nothing was found there. */
  readonly missing?: true;
}

/** The files, or the error that there are none and the advice on how to fix it. */
export type AddonSearch =
  | { readonly files: AddonFiles }
  | { readonly files: null; readonly error: TorchError; readonly advice: string };

/**
 * Searches for the addon. A local build takes precedence over the npm package, because whoever
 * builds wants to run the build. Files that are truncated or for another processor are skipped.
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
 * @throws TorchError ERR_NATIVE_LOAD naming the places, each with its problem and the fix
 */
export function findAddon(): AddonFiles {
  const search = searchAddon();
  if (search.files === null) throw search.error;
  return search.files;
}

/** What to do about files that exist but do not load. */
export function addonFix({ addon }: AddonFiles): string {
  const folder = dirname(addon);
  if (process.env['TORCHFORMER_ADDON']) return namedFix;
  return folder.startsWith(join(packageRoot, 'build') + sep) ? buildFix : replaceFix(folder);
}

/** A broken addon takes precedence over a missing one, because most users have no local build. */
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

/** As long as the folder exists, npm reports that everything is up to date. */
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

/** The folder that the user named; no other place is searched then. */
function lookAtFolder(folder: string): AddonFiles | Failure {
  const problem = problemOf(folder);
  if (problem === null) return filesIn(folder);
  return { place: `TORCHFORMER_ADDON=${folder}`, problem, fix: namedFix };
}

/** The path of the locally built addon, or null if there is none. */
function findLocalBuild(): string | null {
  try {
    // With `path` nothing is loaded; the type definitions have only the form that loads.
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

  // npm may skip the right version silently; then another one in a parent folder is found.
  const found = readManifest(folder)?.version;
  if (found !== version) {
    return {
      place: `${place} ${folder}`,
      problem: `is version ${found ?? 'unknown'}, but torchformer is ${version}`,
      fix:
        `Both must have the same version: remove ${folder} and run ` +
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
      `Run \`npm install --include=optional torchformer@${version}\` on this machine; if ` +
      'npm says "up to date", remove node_modules and the lock file first. It is not installed ' +
      'with --omit=optional, or with a lock file or node_modules from another kind of machine.'
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
