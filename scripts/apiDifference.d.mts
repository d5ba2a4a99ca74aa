/** At most `limit` (60) lines in which two texts differ, and a count of the rest. */
export function differentLines(before: string, after: string, limit?: number): string[];
