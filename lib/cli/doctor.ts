/** `torchformer doctor` */
import type { Command } from 'commander';
import { examineRuntime } from '../runtime/doctor.js';

export function registerDoctor(program: Command): void {
  program
    .command('doctor')
    .description(
      'Show which addon and which libtorch are used, how they were found, and what is wrong.',
    )
    .action(() => {
      const { lines, healthy } = examineRuntime();
      process.stdout.write(`${lines.join('\n')}\n`);
      if (!healthy) process.exitCode = 1;
    });
}
