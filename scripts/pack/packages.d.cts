/** A tarball that was made, as npm describes it; sizes in bytes. */
export interface Packed {
  name: string;
  version: string;
  tarball: string;
  entryCount: number;
  unpackedSize: number;
  size: number;
  shasum: string;
}

/** Packs the packages that are named, or all; see packages.cjs. */
export function packPackages(options: {
  output: string;
  only?: readonly ('main' | 'addon' | 'libtorch')[];
}): Promise<Packed[]>;
