/** What `torchformer doctor --json` prints. Keys may be added, but never removed or changed. */

/** The state of this machine and installation. */
export interface RuntimeReport {
  /** Whether the package can compute here, on all devices that should work. */
  readonly healthy: boolean;
  /** What to do, in one line: `Nothing to do.` or a command. */
  readonly advice: string;
  /** All problems that were found; empty if healthy. */
  readonly problems: readonly string[];
  /** The version of this package. */
  readonly torchformer: string;
  /** The Node.js that ran the examination. */
  readonly node: {
    readonly version: string;
    /** The version of Node-API that it supports. */
    readonly napi: number;
    readonly path: string;
  };
  /** The operating system. */
  readonly platform: {
    readonly os: string;
    readonly arch: string;
    /** The C library; null if the system has only one. */
    readonly libc: 'glibc' | 'musl' | null;
    readonly libcVersion: string | null;
    /** The minimum glibc version of addon and libtorch; null if neither is found or uses glibc. */
    readonly libcNeeded: string | null;
  };
  /** The native addon; null if there is none. */
  readonly addon: {
    readonly path: string;
    /** `local build`, or the name of the npm package that contains it. */
    readonly place: string;
    /** The version of libtorch that it was built for; null if it does not load. */
    readonly builtFor: string | null;
  } | null;
  /** The libtorch that is used; null if there is none. */
  readonly libtorch: {
    /** From a file in its folder; null if there is none. */
    readonly version: string | null;
    readonly path: string;
    /** How it was found: `setup cache (CPU)`, the name of a variable, … */
    readonly place: string;
    /** Whether it is a build with CUDA. */
    readonly cuda: boolean;
    /** The library that was loaded; null if none was. */
    readonly loaded: string | null;
  } | null;
  /** The places that were searched for libtorch, in order; `problem` is null for the one used. */
  readonly searched: readonly {
    readonly place: string;
    readonly path: string | null;
    readonly problem: string | null;
  }[];
  /** Where setup installs libtorch; null if this user has no home folder. */
  readonly cache: string | null;
  /** The processor, and how libtorch uses it. */
  readonly processor: {
    /** Cores that this process may use. */
    readonly cores: number;
    /** Those that libtorch uses: `avx2`, `avx512f`, `amx_bf16`, … */
    readonly features: readonly string[];
    /** The kind of kernels that libtorch selected; null if it does not load. */
    readonly capability: string | null;
    /**
     * What computes float32 matrix products, by number of rows, for people: `own AVX2 kernel; gradients
     * of fewer than 64 rows by MKL`. Null if libtorch does not load.
     */
    readonly float32Products: string | null;
    readonly bfloat16Products: string | null;
    /**
     * What multiplies int8 weights in decoding: `AVX-512 VNNI`, `AVX2`, or `none: bfloat16 weights
     * instead`. Null if libtorch does not load.
     */
    readonly int8Products: string | null;
    /** Threads of one operation; null if libtorch does not load. */
    readonly threads: number | null;
  };
  /** Whether CUDA is used. */
  readonly cuda: {
    /** Whether the CUDA library was opened. */
    readonly opened: boolean;
    /** Whether a GPU can be used. */
    readonly available: boolean;
    /** Why a GPU can be used, or why not. */
    readonly reason: string;
    /**
     * Why this package's own CUDA kernels do not load although the CUDA library does; GPUs then
     * work, but slower. Null if nothing is wrong.
     */
    readonly kernelsProblem: string | null;
  };
  /** A matrix product on each device, computed in a separate process. */
  readonly devices: readonly {
    /** `cpu`, `cuda:0`, … */
    readonly device: string;
    readonly works: boolean;
    /** What went wrong; null if it works. */
    readonly problem: string | null;
  }[];
  /**
   * For some precisions, whether native decoding on this processor gives the same tokens and scores, to
   * the bit, for a source alone and for the same source in a batch; tried in a separate process.
   */
  readonly decoding: readonly {
    /** `float32` or `int8`. */
    readonly precision: string;
    readonly works: boolean;
    /** What was different; null if nothing was. */
    readonly problem: string | null;
  }[];
}
