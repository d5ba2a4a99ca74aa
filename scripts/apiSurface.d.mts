import type ts from 'typescript';

/** The exports of the compiled package, sorted by name. */
export interface Surface {
  readonly checker: ts.TypeChecker;
  readonly exports: readonly { readonly name: string; readonly symbol: ts.Symbol }[];
}

export function readSurface(entry?: string): Surface;

/** The text of api/report.md. */
export function apiReport(surface: Surface): string;

/** What `npm run api` writes: paths from the root → texts. */
export function apiFiles(surface: Surface): Promise<Map<string, string>>;
