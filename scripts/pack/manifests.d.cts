type Manifest = Record<string, unknown>;

/** A platform that packages are made for, as in lib/runtime/native/platform.ts. */
export interface PackagePlatform {
  readonly title: string;
  readonly os: string;
  readonly cpu: string;
  readonly libc: string | null;
  readonly addonPackage: string;
  readonly libtorchPackage: string;
}

/** See manifests.cjs. */
export function mainManifest(manifest: Manifest, platforms: readonly PackagePlatform[]): Manifest;
export function addonManifest(
  manifest: Manifest,
  platform: PackagePlatform,
  libtorchVersion: string,
): Manifest;
export function libtorchManifest(
  manifest: Manifest,
  platform: PackagePlatform,
  libtorchVersion: string,
): Manifest;
