/**
 * A process of suite `decode`: our participants.
 *
 * Arguments: job file, decoder, precision.
 */
import { readFile } from 'node:fs/promises';
import { makeModel, setNumThreads } from 'torchformer';
import { loadWeights } from '../weights.js';
import type { CaseResult, DecodeJob, DecodeResult } from './decodeJob.js';
import type { DecoderName, Precision } from './decoders.js';
import { searchOf } from './searches.js';

/** Tokens of the decoding before the timed ones. */
const warmupLength = 8;

const [jobFile, decoder, precision] = process.argv.slice(2) as [string, DecoderName, Precision];
const job = JSON.parse(await readFile(jobFile, 'utf8')) as DecodeJob;
setNumThreads(job.threads);
const { vocabSize, ...widths } = job.model;
const model = makeModel(vocabSize, { ...widths, maxLen: job.maxLen }).eval();
await loadWeights(model, job.weights);
const search = searchOf(decoder, model, job, precision);

const cases: Record<string, CaseResult> = {};
for (const { name, beam, batch, sentences, maxLength } of job.cases) {
  const sources = job.sources.slice(0, sentences);
  const batches = Array.from({ length: Math.ceil(sources.length / batch) }, (_, index) =>
    sources.slice(index * batch, (index + 1) * batch),
  );
  await search(batches[0]!, { beam, maxLength: Math.min(warmupLength, maxLength) });
  const seconds: number[] = [];
  let ids: (readonly number[])[];
  do {
    const start = performance.now();
    ids = [];
    for (const each of batches) ids.push(...(await search(each, { beam, maxLength })));
    seconds.push((performance.now() - start) / 1000);
  } while (seconds.reduce((sum, each) => sum + each, 0) < job.seconds);
  cases[name] = { seconds, ids };
}
const result: DecodeResult = {
  cases,
  version: `torchformer, ${decoder === 'ours' ? 'SequenceGenerator' : 'greedy'}`,
  peakRss: process.resourceUsage().maxRSS * 1024,
};
console.log(JSON.stringify(result));
