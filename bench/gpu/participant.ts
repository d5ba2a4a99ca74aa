/** Participants that run during the whole benchmark and take steps in turn. */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { createInterface } from 'node:readline';
import { ChildFailed, environment, reasonIn } from '../child.js';
import type { TrainResult } from '../trainJob.js';

/** Steps on `count` of the job's batches, starting at number `first`. */
export interface StepsRequest {
  readonly first: number;
  readonly count: number;
}

/** The answer. */
export interface StepsResult extends TrainResult {
  /** Peak bytes of tensors on the GPU so far. */
  readonly peakDevice?: number;
}

/** A running process; one line of JSON is answered with one line of JSON. */
export class Participant {
  readonly name: string;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;
  readonly #kill = (): void => void this.#child.kill('SIGKILL');
  #errors = '';

  constructor(name: string, command: string, args: readonly string[]) {
    this.name = name;
    this.#child = spawn(command, args, { env: environment(), stdio: 'pipe' });
    process.once('exit', this.#kill);
    // `answer` reports a process that cannot be started or has exited.
    this.#child.on('error', (error) => (this.#errors += `Error: ${error.message}\n`));
    this.#child.stdin.on('error', () => undefined);
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#errors += text));
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /**
   * Waits for the first line, which reports that model and batches are ready.
   *
   * @throws ChildFailed if it exits instead, or takes longer
   */
  async ready(seconds: number): Promise<void> {
    await this.#answer(seconds);
  }

  /** @throws ChildFailed as `ready` does */
  async steps(request: StepsRequest, seconds: number): Promise<StepsResult> {
    this.#child.stdin.write(`${JSON.stringify(request)}\n`);
    return (await this.#answer(seconds)) as StepsResult;
  }

  /** Ends the process. */
  end(): void {
    process.off('exit', this.#kill);
    this.#kill();
  }

  async #answer(seconds: number): Promise<unknown> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<null>((resolve) => {
      timer = setTimeout(() => resolve(null), Math.max(0, seconds) * 1000);
    });
    const line = await Promise.race([this.#lines.next(), late]);
    clearTimeout(timer);
    if (line === null) throw new ChildFailed(`no answer within ${seconds.toFixed(0)} s`);
    if (line.done === true) {
      // Its last output may not have arrived yet.
      await new Promise((resolve) => setTimeout(resolve, 100));
      throw new ChildFailed(`it ended: ${reasonIn(this.#errors)}`);
    }
    return JSON.parse(line.value);
  }
}
