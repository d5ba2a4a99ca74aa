/** Runs npm and gives what it prints. */
export function npm(args: readonly string[], options?: { cwd?: string }): string;
