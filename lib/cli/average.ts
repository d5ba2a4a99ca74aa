/** `torchformer average` */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Option, type Command } from 'commander';
import { averageModels } from '../io/averageModels.js';
import { saveModel } from '../io/checkpoint.js';
import { selectCheckpoints, type CheckpointOrder } from '../io/runCheckpoints.js';
import { counted } from '../runtime/counted.js';
import { integer, path } from './flagValues.js';

interface AverageFlags {
  out: string;
  last?: number;
  best?: number;
  by?: CheckpointOrder;
  overwrite?: true;
}

export function registerAverage(program: Command): void {
  program
    .command('average')
    .description(
      'Average the weights of several models of one training, which often translates better than each.',
    )
    .argument('<folders...>', 'model folders; with --last or --best: the folder of one run')
    .requiredOption('--out <folder>', 'where to save the averaged model', path)
    .addOption(
      new Option('--last <count>', 'average the last models in checkpoints/ of the run')
        .argParser(integer(1))
        .conflicts('best'),
    )
    .addOption(
      new Option('--best <count>', 'average the best models in checkpoints/ of the run').argParser(
        integer(1),
      ),
    )
    .addOption(
      new Option(
        '--by <value>',
        'what the best are chosen by: the score of the run, or its validation loss, BLEU or chrF',
      ).choices(['score', 'loss', 'bleu', 'chrf']),
    )
    .option('--overwrite', 'replace a model in --out')
    .addHelpText(
      'after',
      '\nThe models must have the same settings and tokenizer. They are read one tensor at a time.',
    )
    .action(async (folders: string[], flags: AverageFlags, command: Command) => {
      const { out, last, best, by } = flags;
      if (existsSync(join(out, 'config.json')) && flags.overwrite !== true) {
        command.error(`error: ${out} has a model; choose another folder, or use --overwrite`);
      }
      const isOfRun = last !== undefined || best !== undefined;
      if (isOfRun && folders.length > 1) {
        command.error('error: --last and --best take the folder of one run');
      }
      if (by !== undefined && best === undefined) command.error('error: --by requires --best');
      const chosen = isOfRun ? await chosenIn(folders[0] as string, flags) : folders;
      await average(chosen, out);
    });
}

async function chosenIn(run: string, { last, best, by }: AverageFlags): Promise<string[]> {
  const checkpoints = await selectCheckpoints(run, {
    ...(last === undefined ? {} : { last }),
    ...(best === undefined ? {} : { best }),
    ...(by === undefined ? {} : { by }),
  });
  return checkpoints.map(({ folder }) => folder);
}

async function average(chosen: readonly string[], out: string): Promise<void> {
  const { model, tokenizer, config, folders } = await averageModels(chosen);
  try {
    const { specialIds = null, columns = null } = config ?? {};
    await saveModel(out, model, {
      ...(tokenizer === null ? {} : { tokenizer }),
      ...(specialIds === null ? {} : { specialIds }),
      ...(columns === null ? {} : { columns }),
      training: { averaged: [...folders] },
    });
  } finally {
    model.dispose();
  }
  for (const folder of folders) process.stderr.write(`  ${folder}\n`);
  process.stderr.write(`averaged ${counted(folders.length, 'model')} into ${out}\n`);
}
