export interface PackedPackage {
  readonly manifest: Readonly<Record<string, unknown>> & { name: string; version: string };
  readonly bytes: number;
}
export interface Versions {
  readonly manifest: { readonly version: string };
  readonly lock: {
    readonly version: string;
    readonly packages: Readonly<Record<string, { readonly version?: string }>>;
  };
  readonly changelog: string;
  readonly readme: string;
  readonly libtorchVersion: string;
}
export function versionFaults(versions: Versions): string[];
export function packageFaults(
  packages: readonly PackedPackage[],
  wanted: { version: string; libtorchVersion: string },
): string[];
export function handSteps(
  version: string,
  changelog: string,
  tarballs: readonly { file: string; kind: 'main' | 'addon' | 'libtorch' }[],
): string[];
