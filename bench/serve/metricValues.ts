/** Reads what a server reports about itself. */
import type { ServerReading } from './serveJob.js';

/**
 * The value of a metric without labels.
 *
 * @param text what `/metrics` answers
 * @throws Error if the metric is not there
 */
export function metricValue(text: string, name: string): number {
  const line = text.split('\n').find((each) => each.startsWith(`${name} `));
  if (line === undefined) throw new Error(`/metrics has no ${name}`);
  return Number(line.slice(name.length + 1));
}

/** What the server says of the time between two answers of `/metrics`. */
export function readingBetween(earlier: string, later: string): ServerReading {
  const delay = 'torchformer_event_loop_delay_seconds';
  const cpu = 'process_cpu_seconds_total';
  return {
    loopP99: metricValue(later, `${delay}_p99`),
    loopMax: metricValue(later, `${delay}_max`),
    cpu: metricValue(later, cpu) - metricValue(earlier, cpu),
  };
}
