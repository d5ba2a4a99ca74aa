/** `torchformer report` */
import type { Command } from 'commander';
import { writeReport } from '../train/report/writeReport.js';
import { path } from './flagValues.js';

interface ReportFlags {
  out?: string;
}

export function registerReport(program: Command): void {
  program
    .command('report')
    .description('Write a page with the curves, samples and settings of one or more runs.')
    .argument('<runs...>', 'folders of runs, also of runs that are not over or were killed')
    .option(
      '--out <file>',
      'file to write (default: report.html in the folder of the only run, else in the current folder)',
      path,
    )
    .action(async (runs: string[], { out }: ReportFlags) => {
      const page = await writeReport(runs, out === undefined ? {} : { out });
      process.stdout.write(`${page}\n`);
    });
}
