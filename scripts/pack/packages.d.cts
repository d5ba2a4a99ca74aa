/** A packed tarball, as npm describes it; sizes in bytes. */
export interface Packed {
  name: string;
  version: string;
  tarball: string;
  entryCount: number;
  unpackedSize: number;
  size: number;
  shasum: string;
}

/** Packs the named packages, or all; see packages.cjs. */
export function packPackages(options: {
  output: string;
  only?: readonly ('main' | 'addon' | 'libtorch')[];
}): Promise<Packed[]>;
