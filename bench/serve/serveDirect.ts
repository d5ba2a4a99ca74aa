/**
 * A process of suite `serve`: the same work without a server.
 *
 * Argument: job file.
 */
import { readFile } from 'node:fs/promises';
import { setNumThreads, Translator } from 'torchformer';
import { runLoad, runLone, withCpuTime } from './runLoad.js';
import type { DirectResult, ServeJob } from './serveJob.js';

const job = JSON.parse(await readFile(process.argv[2]!, 'utf8')) as ServeJob;
const { folder, sentences, seconds } = job;
setNumThreads(job.threads);
const translator = await Translator.load(folder);
const translate = (sentence: string): Promise<string> => translator.translate(sentence);

// As the server, it has translated before it is measured.
let outputs = await translator.translate(sentences);
const lone = await runLone(job.lone, translate, seconds);
const batch: number[] = [];
const [, batchCpu] = await withCpuTime(async () => {
  const start = performance.now();
  do {
    const begin = performance.now();
    outputs = await translator.translate(sentences);
    batch.push((performance.now() - begin) / 1000);
  } while (performance.now() - start < seconds * 1000);
});
const [load, loadCpu] = await withCpuTime(() => runLoad(sentences, translate, job));
await translator.close();
const result: DirectResult = { batch, batchCpu, outputs, lone, load, loadCpu };
console.log(JSON.stringify(result));
