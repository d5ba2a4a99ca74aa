/** Runs npm and returns its output. */
export function npm(args: readonly string[], options?: { cwd?: string }): string;
