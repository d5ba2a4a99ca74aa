/** The C library that Node.js runs on, because libtorch is built only for glibc. */

/** The C library of this process. */
export interface Libc {
  /** Null on systems with neither. */
  readonly kind: 'glibc' | 'musl' | null;
  /** `2.36`; null if the library does not report it. */
  readonly version: string | null;
}

/** The parts of Node's diagnostic report that are used here. */
interface ReportFacts {
  readonly header?: { readonly glibcVersionRuntime?: string };
  readonly sharedObjects?: readonly string[];
}

/** From Node's diagnostic report, which takes tens of milliseconds. */
export function processLibc(): Libc {
  const { report } = process as { report?: NodeJS.ProcessReport & { excludeNetwork?: boolean } };
  if (report === undefined) return { kind: null, version: null };
  // Otherwise it resolves the host names of all connections.
  const before = report.excludeNetwork;
  report.excludeNetwork = true;
  try {
    return libcOfReport(report.getReport());
  } finally {
    report.excludeNetwork = before ?? false;
  }
}

/** The C library in a diagnostic report of Node.js. */
export function libcOfReport({ header, sharedObjects = [] }: ReportFacts): Libc {
  const version = header?.glibcVersionRuntime;
  if (version !== undefined && version !== '') return { kind: 'glibc', version };
  const musl = sharedObjects.some((name) => /\/(ld-musl-|libc\.musl-)/.test(name));
  return { kind: musl ? 'musl' : null, version: null };
}
