import type ts from 'typescript';

/** The exports of the compiled package, sorted by name. */
export interface Surface {
  readonly checker: ts.TypeChecker;
  readonly exports: readonly { readonly name: string; readonly symbol: ts.Symbol }[];
}

export function readSurface(entry?: string): Surface;

/** The text of api/report.md. */
export function apiReport(surface: Surface): string;

/** The text of lib/index.cts, not formatted. */
export function requireEntry(surface: Surface): string;
