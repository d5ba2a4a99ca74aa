/** The flags of `torchformer train` that start from a trained model, or train a part of it. */
import type { Command } from 'commander';
import type { Tokenizer } from '../../data/tokenizers/tokenizer.js';
import { describeInitialization, initializeFrom } from '../../io/initializeFrom.js';
import { freeze } from '../../nn/finetuning/freeze.js';
import { applyLora } from '../../nn/finetuning/lora.js';
import type { Transformer } from '../../nn/model/transformer.js';
import { counted } from '../../runtime/counted.js';
import { integer, nonEmpty, path, positiveNumber, probability } from '../flagValues.js';

/** Patterns are separated by commas. */
export interface FineTuningFlags {
  initFrom?: string;
  initInclude?: string;
  initExclude?: string;
  initPartial?: boolean;
  freeze?: string;
  lora?: number;
  loraAlpha?: number;
  loraDropout?: number;
  loraTargets?: string;
}

export function addFineTuningFlags(command: Command): Command {
  return command
    .optionsGroup('Fine-tuning:')
    .option(
      '--init-from <model>',
      'start from the weights of a run, a model folder or a safetensors file; rows of the vocabulary are ' +
        'matched by token',
      path,
    )
    .option(
      '--init-include <names>',
      'take only parameters with these names, separated by commas; * stands for any characters',
      nonEmpty,
    )
    .option('--init-exclude <names>', 'leave out parameters with these names', nonEmpty)
    .option('--init-partial', 'draw parameters that the source lacks, instead of an error')
    .option('--freeze <names>', 'do not train parameters with these names: encoder.*', nonEmpty)
    .option('--lora <rank>', 'train low-rank updates of this rank, and nothing else', integer(1))
    .option(
      '--lora-alpha <factor>',
      'the updates are multiplied by this / rank (default: the rank)',
      positiveNumber,
    )
    .option(
      '--lora-dropout <share>',
      'dropout of the input of the updates (default: 0)',
      probability,
    )
    .option(
      '--lora-targets <names>',
      'linear layers to update (default: queries and values, *.linears.0,*.linears.2)',
      nonEmpty,
    );
}

/** What does not go together; null if nothing. */
export function fineTuningFault(flags: FineTuningFlags): string | null {
  const { initFrom, initInclude, initExclude, initPartial } = flags;
  const ofSource = { '--init-include': initInclude, '--init-exclude': initExclude };
  const needing = Object.entries({ ...ofSource, '--init-partial': initPartial });
  for (const [flag, value] of needing) {
    if (value !== undefined && initFrom === undefined) return `${flag} needs --init-from`;
  }
  const { lora, loraAlpha, loraDropout, loraTargets } = flags;
  const ofLora = Object.entries({
    '--lora-alpha': loraAlpha,
    '--lora-dropout': loraDropout,
    '--lora-targets': loraTargets,
  });
  for (const [flag, value] of ofLora) {
    if (value !== undefined && lora === undefined) return `${flag} needs --lora`;
  }
  return lora !== undefined && flags.freeze !== undefined
    ? '--lora freezes everything but its updates: omit --freeze'
    : null;
}

/**
 * Initializes and freezes a model as the flags say; call it before the optimizer is made.
 *
 * @param say receives what was done, in lines
 */
export async function prepareFineTuning(
  model: Transformer,
  tokenizer: Tokenizer,
  flags: FineTuningFlags,
  say: (line: string) => void,
): Promise<void> {
  const { initFrom, initInclude, initExclude, initPartial } = flags;
  if (initFrom !== undefined) {
    const report = await initializeFrom(model, initFrom, {
      tokenizer,
      ...(initInclude === undefined ? {} : { include: patternsOf(initInclude) }),
      ...(initExclude === undefined ? {} : { exclude: patternsOf(initExclude) }),
      strict: initPartial !== true,
    });
    for (const line of describeInitialization(report).split('\n')) say(line);
  }
  const { lora, loraAlpha, loraDropout, loraTargets } = flags;
  if (lora !== undefined) {
    const layers = applyLora(model, {
      rank: lora,
      ...(loraAlpha === undefined ? {} : { alpha: loraAlpha }),
      ...(loraDropout === undefined ? {} : { dropout: loraDropout }),
      ...(loraTargets === undefined ? {} : { targets: patternsOf(loraTargets) }),
    });
    say(`low-rank updates of ${counted(layers.length, 'layer')}: ${trainedPart(model)}`);
  }
  if (flags.freeze !== undefined) {
    freeze(model, patternsOf(flags.freeze));
    say(`frozen: ${flags.freeze}; ${trainedPart(model)}`);
  }
}

function trainedPart(model: Transformer): string {
  const [trained, all] = [model.parameterCount({ trainable: true }), model.parameterCount()].map(
    (count) => count.toLocaleString('en-US'),
  );
  return `${trained} of ${all} parameters are trained`;
}

function patternsOf(text: string): string[] {
  return text
    .split(',')
    .map((pattern) => pattern.trim())
    .filter((pattern) => pattern !== '');
}
