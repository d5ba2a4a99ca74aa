/** The input and output of the processes of suite `serve`. */

/** A model and what is translated with it. */
export interface PreparedServing {
  /** Model or run folder. */
  readonly folder: string;
  /** `small, V 8000, …` */
  readonly description: string;
  /** Each is one line, and fits into the model. */
  readonly sentences: readonly string[];
  /** A short one. */
  readonly lone: string;
}

export interface ServeJob extends PreparedServing {
  readonly threads: number;
  /** Callers at the same time. */
  readonly clients: number;
  /** Each measurement takes at least so long. */
  readonly seconds: number;
}

/** All sentences, each in a call of its own, by callers of which each waits for its answer. */
export interface LoadResult {
  /** Each sentence counts as often as it was translated. */
  readonly sentencesPerSecond: number;
  /** Seconds of every call, in the order of their ends. */
  readonly latencies: readonly number[];
  /** The translation of each sentence, in order; null if it was not the same every time, or failed. */
  readonly outputs: readonly (string | null)[];
  /** Reasons of calls that failed, with their numbers. */
  readonly faults: Readonly<Record<string, number>>;
}

/** The JSON line of `serveDirect.ts`: a `Translator` in the process of its caller. */
export interface DirectResult {
  /** Seconds of each call of `translate` with all sentences. */
  readonly batch: readonly number[];
  /** Processor time of those calls, in seconds. */
  readonly batchCpu: number;
  readonly outputs: readonly string[];
  /** Seconds of calls of `translate` with the short sentence, one after another. */
  readonly lone: readonly number[];
  readonly load: LoadResult;
  /** Processor time of the load, in seconds. */
  readonly loadCpu: number;
}

/** What the server says about itself after a measurement, since the last. */
export interface ServerReading {
  /** Delay of its event loop in seconds: 99th percentile and longest. */
  readonly loopP99: number;
  readonly loopMax: number;
  /** Processor time in seconds. */
  readonly cpu: number;
}

/** The JSON line of `serveClient.ts`. */
export interface ServedResult {
  /** Seconds of the first request, for which the model is loaded. */
  readonly first: number;
  readonly lone: readonly number[];
  readonly load: LoadResult;
  /** Processor time of the client in seconds, during the load. */
  readonly clientCpu: number;
  readonly server: Readonly<Record<ServePhase, ServerReading>>;
  /** Resident memory of the server in bytes, at the end. */
  readonly memory: number;
}

export const servePhases = ['loading', 'lone', 'load'] as const;
export type ServePhase = (typeof servePhases)[number];
