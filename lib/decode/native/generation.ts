/** Many searches at a time in native code, off the event loop. */
import { call, callAsync } from '../../tensor/dispatch.js';
import type { Tensor } from '../../tensor/tensor.js';
import type { PreparedModel } from './preparedModel.js';

/** A finished target, as the search found it. */
export interface FoundTarget {
  /** Without the end token. */
  readonly ids: number[];
  /** Whether the end token came before the maximum length. */
  readonly ended: boolean;
  /** Sum of log-probabilities, with all penalties. */
  readonly score: number;
  /** Log-probability of each token, the end token last; empty unless asked for. */
  readonly tokenScores: number[];
  /** A row for each token, the end token last, with a weight for each source token; if asked for. */
  readonly attention: number[][] | null;
}

/** Arguments of the op `torchformer_decode::add`, by their names in its schema. */
export type SearchArguments = Readonly<Record<string, number | boolean | readonly number[]>>;

/** One source to search a target for. */
export interface GenerationJob {
  /** Ids of the source, with everything the model was trained with. */
  readonly source: readonly number[];
  /** Maximum number of tokens, including the end token. */
  readonly maxLength: number;
  readonly search: SearchArguments;
  /** Called with all tokens that are certain by now. Default: never. */
  readonly onTokens?: ((ids: number[]) => void) | undefined;
  /** The error for logits that are NaN or infinite; `position` counts from 1. */
  readonly faultAt: (position: number) => Error;
}

interface RunningJob extends GenerationJob {
  readonly resolve: (targets: FoundTarget[]) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Native code works for this long before it reports, in seconds: short, so that abort and new texts
 * wait no longer; long against the cost of a report, about 0.1 ms.
 */
const workTime = 0.01;
/** For this long if something is finished. */
const eagerTime = 0.002;

/** How many hypotheses are decoded together, of all callers. More rows make products faster. */
const mostRows = 256;

/** The kinds of events, as in native/core/decode/generation.h. */
const eventKinds = { tokens: 0, done: 1, notFinite: 2 } as const;

const collector = new FinalizationRegistry<number>((handle) => {
  call('torchformer_decode::free_generation', handle);
});

/**
 * Runs searches for everyone who decodes with one prepared model, or one ensemble; all share the rows
 * of a step.
 */
export class NativeGeneration {
  readonly #models: readonly PreparedModel[];
  readonly #handle: number;
  readonly #jobs = new Map<number, RunningJob>();
  #isRunning = false;
  #isBroken = false;

  /** @param never ids that are never generated */
  constructor(
    models: readonly PreparedModel[],
    bos: number,
    eos: number,
    never: readonly number[],
  ) {
    this.#models = models;
    const handles = models.map(({ handle }) => handle);
    this.#handle = call('torchformer_decode::start', handles, bos, eos, {
      never,
      most_rows: mostRows,
    }) as number;
    collector.register(this, this.#handle);
  }

  /** Whether it decodes with these prepared models, and no failure has left its searches incomplete. */
  uses(models: readonly PreparedModel[]): boolean {
    return (
      !this.#isBroken &&
      models.length === this.#models.length &&
      models.every((model, index) => model === this.#models[index])
    );
  }

  /**
   * Searches targets for a source, the best first.
   *
   * @throws the signal's reason after an abort; the job's fault; TorchError from native code
   */
  search(job: GenerationJob, signal?: AbortSignal): Promise<FoundTarget[]> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const number = call('torchformer_decode::add', this.#handle, job.source, job.maxLength, {
        ...job.search,
        streams: job.onTokens !== undefined,
      }) as number;
      const abort = () => {
        call('torchformer_decode::cancel', this.#handle, number);
        this.#jobs.delete(number);
        reject(signal?.reason as Error);
      };
      const settled =
        <T>(settle: (value: T) => void) =>
        (value: T) => {
          signal?.removeEventListener('abort', abort);
          settle(value);
        };
      this.#jobs.set(number, { ...job, resolve: settled(resolve), reject: settled(reject) });
      signal?.addEventListener('abort', abort, { once: true });
      if (!this.#isRunning) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    const start = () => callAsync('torchformer_decode::run', this.#handle, workTime, eagerTime);
    try {
      let current: Promise<unknown> | null = start();
      while (current !== null) {
        // The next work is in the queue before the results of the last are read.
        const following: Promise<unknown> | null = this.#jobs.size > 0 ? start() : null;
        const [whole, real] = (await current) as [Tensor, Tensor];
        this.#read(whole, real);
        current = following ?? (this.#jobs.size > 0 ? start() : null);
      }
    } catch (error) {
      this.#isBroken = true;
      for (const { reject } of this.#jobs.values()) reject(error);
      this.#jobs.clear();
    } finally {
      this.#isRunning = false;
    }
  }

  /** Hands out what has happened; the form of events is in native/core/decode/decode_ops.cc. */
  #read(whole: Tensor, real: Tensor): void {
    const numbers = Array.from(whole.data() as BigInt64Array, Number);
    const scores = Array.from(real.data() as Float32Array);
    disposeAll([whole, real]);
    let at = 0;
    let scoreAt = 0;
    const next = () => numbers[at++] as number;
    const take = (count: number) => numbers.slice(at, (at += count));
    const takeScores = (count: number) => scores.slice(scoreAt, (scoreAt += count));
    while (at < numbers.length) {
      const request = next();
      const kind = next();
      const job = this.#jobs.get(request);
      if (kind === eventKinds.tokens) {
        const ids = take(next());
        job?.onTokens?.(ids);
        continue;
      }
      this.#jobs.delete(request);
      if (kind === eventKinds.notFinite) {
        const position = next();
        job?.reject(job.faultAt(position));
        continue;
      }
      const targets = Array.from({ length: next() }, (): FoundTarget => {
        const ended = next() === 1;
        const ids = take(next());
        const [scoreCount, weightCount] = [next(), next()];
        const [score = NaN] = takeScores(1);
        const tokenScores = takeScores(scoreCount);
        const weights = takeScores(weightCount);
        const rows = weightCount === 0 ? 0 : ids.length + (ended ? 1 : 0);
        const width = rows === 0 ? 0 : weightCount / rows;
        return {
          ids,
          ended,
          score,
          tokenScores,
          attention:
            rows === 0
              ? null
              : Array.from({ length: rows }, (_, row) =>
                  weights.slice(row * width, (row + 1) * width),
                ),
        };
      });
      job?.resolve(targets);
    }
  }
}

function disposeAll(tensors: readonly Tensor[]): void {
  for (const tensor of tensors) tensor.dispose();
}
