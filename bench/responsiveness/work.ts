/**
 * A process of suite `responsiveness`. Arguments: model folder, threads.
 *
 * A native timer of Node.js measures how much later than a millisecond after the last turn of the event
 * loop the next one comes, so that an idle loop has delays of about a millisecond too.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import { setNumThreads, Translator } from 'torchformer';
import { sourceLength, targetLength } from '../decode/decodeModels.js';

export type WorkName = 'idle' | 'load' | 'first' | 'together' | 'concurrent' | 'sequential';

/** In seconds. */
export interface WorkTime {
  readonly seconds: number;
  /** Delays of the event loop meanwhile. */
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** The JSON line of the participant. */
export type ResponsivenessResult = Readonly<Record<WorkName, WorkTime>>;

const [folder, threads] = process.argv.slice(2) as [string, string];
setNumThreads(Number(threads));

const texts = Array.from({ length: 64 }, (_, row) =>
  // Without bos and eos.
  Array.from({ length: sourceLength - 2 }, (_word, at) => `w${(row * 131 + at * 17) % 7990}`).join(
    ' ',
  ),
);

async function measure(work: () => Promise<unknown>): Promise<WorkTime> {
  const monitor = monitorEventLoopDelay({ resolution: 1 });
  monitor.enable();
  // The first measurement of a monitor begins here.
  await setTimeout(5);
  monitor.reset();
  const start = performance.now();
  await work();
  const seconds = (performance.now() - start) / 1000;
  // A block at the end is measured by the next turn.
  await setTimeout(5);
  monitor.disable();
  const [p50, p99, max] = [monitor.percentile(50), monitor.percentile(99), monitor.max];
  return { seconds, p50: p50 / 1e9, p99: p99 / 1e9, max: max / 1e9 };
}

const idle = await measure(() => setTimeout(1000));
let loaded: Translator | undefined;
const load = await measure(async () => (loaded = await Translator.load(folder)));
const translator = loaded as Translator;
const eos = '<eos>';
const options = {
  // Random weights would end some targets early.
  suppress: [translator.tokenizer.idOf(eos) as number],
  maxLength: targetLength,
};
const first = await measure(() => translator.translate('w1 w2', { maxLength: 2 }));
const together = await measure(() => translator.translate(texts, { ...options, batchSize: 64 }));
const concurrent = await measure(() =>
  Promise.all(texts.map((text) => translator.translate(text, options))),
);
const sequential = await measure(async () => {
  for (const text of texts.slice(0, 16)) await translator.translate(text, options);
});
const result: ResponsivenessResult = { idle, load, first, together, concurrent, sequential };
console.log(JSON.stringify(result));
