/** The tables of suite `serve`. */
import { print } from '../report.js';
import { duration, gigabytes, ratio, table } from '../table.js';
import type { Latencies, LoneFigure, RateFigure, ServeFigures } from './serveFigures.js';
import { servePhases, type ServePhase } from './serveJob.js';

const phaseNames: Readonly<Record<ServePhase, string>> = {
  loading: 'the first request',
  lone: 'lone requests',
  load: 'all clients',
};

export function printServing(figures: ServeFigures, clients: number): void {
  const { batch, calls, served, lone, loop, first, clientCpu, memory, faults, sentences } = figures;
  print(
    table(
      [
        'participant',
        'sentences/s',
        'rounds',
        'of one call',
        'median',
        'p99',
        'longest',
        'processor',
        'equal',
      ],
      [
        rateRow('translate, one call', batch, sentences),
        rateRow(`translate, ${clients} calls at a time`, calls, sentences),
        rateRow(`serve, ${clients} clients`, served, sentences),
      ],
    ),
  );
  print('\nA short sentence, alone\n');
  print(
    table(
      ['participant', 'median', 'p99', 'longest', 'p99 of own median'],
      [loneRow('translate', lone.direct), loneRow('serve', lone.served)],
    ),
  );
  print("\nDelay of the server's event loop\n");
  print(
    table(
      ['during', 'p99', 'longest'],
      servePhases.map((phase) => [
        phaseNames[phase],
        duration(loop[phase].p99),
        duration(loop[phase].max),
      ]),
    ),
  );
  print(
    `\nfirst request, which loads the model: ${duration(first)}; processor time of the client per sentence: ` +
      `${duration(clientCpu)}; memory of the server: ` +
      gigabytes(memory),
  );
  for (const [reason, count] of Object.entries(faults)) print(`${count} failed: ${reason}`);
}

function rateRow(name: string, figure: RateFigure, sentences: number): string[] {
  const { sentencesPerSecond, range, share, latencies, cpu, equal } = figure;
  return [
    name,
    sentencesPerSecond.toFixed(0),
    range.map((rate) => rate.toFixed(0)).join('..'),
    latencies === null ? '' : ratio(share),
    ...(latencies === null ? ['', '', ''] : latencyCells(latencies)),
    duration(cpu),
    `${equal} of ${sentences}`,
  ];
}

function loneRow(name: string, figure: LoneFigure): string[] {
  return [name, ...latencyCells(figure), ratio(figure.ratio)];
}

function latencyCells({ median, p99, max }: Latencies): string[] {
  return [duration(median), duration(p99), duration(max)];
}
