/** Which C library this Node runs on: libtorch has builds for glibc only. */

/** The C library of this process. */
export interface Libc {
  /** Null on systems that know neither. */
  readonly kind: 'glibc' | 'musl' | null;
  /** `2.36`; null where the library does not tell. */
  readonly version: string | null;
}

/** What of Node's diagnostic report tells it. */
interface ReportFacts {
  readonly header?: { readonly glibcVersionRuntime?: string };
  readonly sharedObjects?: readonly string[];
}

/** Asks Node's diagnostic report, which takes some tens of milliseconds. */
export function processLibc(): Libc {
  const { report } = process as { report?: NodeJS.ProcessReport & { excludeNetwork?: boolean } };
  if (report === undefined) return { kind: null, version: null };
  // With the network it would look up the names of all connections.
  const before = report.excludeNetwork;
  report.excludeNetwork = true;
  try {
    return libcOfReport(report.getReport());
  } finally {
    report.excludeNetwork = before ?? false;
  }
}

/** The C library that a report of Node tells of. */
export function libcOfReport({ header, sharedObjects = [] }: ReportFacts): Libc {
  const version = header?.glibcVersionRuntime;
  if (version !== undefined && version !== '') return { kind: 'glibc', version };
  const musl = sharedObjects.some((name) => /\/(ld-musl-|libc\.musl-)/.test(name));
  return { kind: musl ? 'musl' : null, version: null };
}
