/**
 * A process of suite `serve`: the client of a server that is running.
 *
 * Arguments: job file, address.
 */
import { readFile } from 'node:fs/promises';
import { Pool } from 'undici';
import { metricValue, readingBetween } from './metricValues.js';
import { runLoad, runLone, withCpuTime } from './runLoad.js';
import { source, target } from './servedLanguages.js';
import type { ServedResult, ServeJob } from './serveJob.js';

const [jobFile, address] = process.argv.slice(2) as [string, string];
const job = JSON.parse(await readFile(jobFile, 'utf8')) as ServeJob;
// Each of the clients has a connection of its own, as if it were a process of its own.
const pool = new Pool(address, { connections: job.clients, pipelining: 1 });

const started = await metrics();
const begin = performance.now();
await translate(job.lone);
const first = (performance.now() - begin) / 1000;
const loaded = await metrics();
// As in serveDirect.ts, all has been translated once before it is measured.
await runLoad(job.sentences, translate, { clients: job.clients, seconds: 0 });
const warm = await metrics();
const lone = await runLone(job.lone, translate, job.seconds);
const afterLone = await metrics();
const [load, clientCpu] = await withCpuTime(() => runLoad(job.sentences, translate, job));
const afterLoad = await metrics();
await pool.close();
const result: ServedResult = {
  first,
  lone,
  load,
  clientCpu,
  server: {
    loading: readingBetween(started, loaded),
    lone: readingBetween(warm, afterLone),
    load: readingBetween(afterLone, afterLoad),
  },
  memory: metricValue(afterLoad, 'process_resident_memory_bytes'),
};
console.log(JSON.stringify(result));

async function translate(q: string): Promise<string> {
  const { statusCode, body } = await pool.request({
    method: 'POST',
    path: '/translate',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ q, source, target }),
  });
  const text = await body.text();
  if (statusCode !== 200) throw new Error(`status ${statusCode}: ${text}`);
  return (JSON.parse(text) as { translatedText: string }).translatedText;
}

async function metrics(): Promise<string> {
  const { body } = await pool.request({ method: 'GET', path: '/metrics' });
  return body.text();
}
