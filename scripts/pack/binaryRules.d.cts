/** Faults of a native library, one line each; see binaryRules.cjs. */
export function faultsOf(
  file: string,
  options: { libtorch: string; privateFolders?: readonly string[] },
): string[];

/** The highest versions that may be required, by family: `GLIBC` → `2.28`. */
export const floor: Readonly<Record<string, string>>;
