/** What `torchformer doctor --json` prints. Keys are stable: new ones may come, none go or change. */

/** What the examination of this machine and installation found. */
export interface RuntimeReport {
  /** Whether the package can compute here, on all devices that it should. */
  readonly healthy: boolean;
  /** What to do, in one line: `Nothing to do.`, or a command. */
  readonly advice: string;
  /** Each fault that was found; empty when healthy. */
  readonly problems: readonly string[];
  /** The version of this package. */
  readonly torchformer: string;
  /** The Node.js that ran it. */
  readonly node: {
    readonly version: string;
    /** The version of Node-API that it offers. */
    readonly napi: number;
    readonly path: string;
  };
  /** The system that it ran on. */
  readonly platform: {
    readonly os: string;
    readonly arch: string;
    /** The C library; null where the system has one only. */
    readonly libc: 'glibc' | 'musl' | null;
    readonly libcVersion: string | null;
    /** The glibc that addon and libtorch need at least; null when neither is there, or not for glibc. */
    readonly libcNeeded: string | null;
  };
  /** The native addon; null when there is none. */
  readonly addon: {
    readonly path: string;
    /** `local build`, or the name of the npm package that it came with. */
    readonly place: string;
    /** The version of libtorch that it was built for; null when it does not load. */
    readonly builtFor: string | null;
  } | null;
  /** The libtorch that is used; null when there is none. */
  readonly libtorch: {
    /** As its folder tells; null when it does not. */
    readonly version: string | null;
    readonly path: string;
    /** How it was found: `set-up cache (CPU)`, the name of a variable, … */
    readonly place: string;
    /** Whether it is a build with CUDA. */
    readonly cuda: boolean;
    /** The library that was loaded; null when none was. */
    readonly loaded: string | null;
  } | null;
  /** The places that libtorch was looked for, in order; `problem` is null for the one used. */
  readonly searched: readonly {
    readonly place: string;
    readonly path: string | null;
    readonly problem: string | null;
  }[];
  /** Where set-up puts libtorch; null when this user has no such place. */
  readonly cache: string | null;
  /** What computes, and how libtorch uses it. */
  readonly processor: {
    /** What this process may use. */
    readonly cores: number;
    /** Those that matter to libtorch: `avx2`, `avx512f`, `amx_bf16`, … */
    readonly features: readonly string[];
    /** The kind of kernels that libtorch chose; null when it does not load. */
    readonly capability: string | null;
    /** The library of float32 matrix products; null when libtorch does not load. */
    readonly float32Products: string | null;
    readonly bfloat16Products: string | null;
    /** Threads of one operation; null when libtorch does not load. */
    readonly threads: number | null;
  };
  /** Whether CUDA is used. */
  readonly cuda: {
    /** Whether the CUDA library was opened. */
    readonly opened: boolean;
    /** Whether a GPU can be used. */
    readonly available: boolean;
    /** Why, or why not. */
    readonly reason: string;
    /**
     * Why this package's own CUDA kernels do not open though the CUDA library does; GPUs work without
     * them, slower. Null: nothing is wrong.
     */
    readonly kernelsProblem: string | null;
  };
  /** A product of two matrices on each device, computed in a process of its own. */
  readonly devices: readonly {
    /** `cpu`, `cuda:0`, … */
    readonly device: string;
    readonly works: boolean;
    /** What went wrong, null when it works. */
    readonly problem: string | null;
  }[];
}
