/** The flags of `torchformer train` that choose the model. */
import { Option, type Command } from 'commander';
import { modelChoices } from '../../nn/model/modelOptions.js';
import type { ModelOptions, Positions, Tie } from '../../nn/model/modelOptions.js';
import type { Activation } from '../../nn/layers/positionwiseFeedForward.js';
import type { NormOrder } from '../../nn/model/sublayerConnection.js';
import { integer, probability } from '../flagValues.js';

export interface ModelFlags {
  layers: number;
  dModel: number;
  dFf: number;
  heads: number;
  dropout: number;
  attentionDropout?: number;
  norm: 'layer' | 'rms';
  order: NormOrder;
  positions: Positions;
  activation: Activation;
  tie: Tie;
  bias: boolean;
}

export function addModelFlags(command: Command): Command {
  const choice = (flag: string, text: string, choices: readonly string[], byDefault: string) =>
    new Option(flag, text).choices(choices).default(byDefault);
  return command
    .optionsGroup('Model:')
    .option('--layers <count>', 'layers in each of the encoder and the decoder', integer(1), 6)
    .option('--d-model <size>', 'size of the vectors', integer(1), 512)
    .option('--d-ff <size>', 'inner size of the feed-forward layers', integer(1), 2048)
    .option('--heads <count>', 'attention heads; must divide --d-model', integer(1), 8)
    .option(
      '--dropout <share>',
      'dropout of positions, sublayers and feed-forward',
      probability,
      0.1,
    )
    .option(
      '--attention-dropout <share>',
      'dropout of the attention weights (default: 0.1, and 0 with --dropout 0)',
      probability,
    )
    .addOption(
      choice(
        '--norm <kind>',
        'layer: LayerNorm (mean 0, deviation 1); rms: RMSNorm (mean square 1)',
        ['layer', 'rms'],
        'layer',
      ),
    )
    .addOption(
      choice(
        '--order <order>',
        'pre: norm before each sublayer and at the end; post: after each sublayer, as in the paper',
        modelChoices.order,
        'pre',
      ),
    )
    .addOption(
      choice(
        '--positions <kind>',
        'paired: sines and cosines as in the paper; perColumn: a frequency for each column; ' +
          'learned: learned vectors; rotary: rotated queries and keys, --d-model / --heads must be even',
        modelChoices.positions,
        'paired',
      ),
    )
    .addOption(
      choice(
        '--activation <name>',
        'activation of the feed-forward layers',
        modelChoices.activation,
        'relu',
      ),
    )
    .addOption(
      choice(
        '--tie <weights>',
        'use one matrix for both embeddings, for target embedding and output, or for all three',
        modelChoices.tie,
        'none',
      ),
    )
    .option('--no-bias', 'linear layers without biases');
}

/** The error of a combination of flags, for `command.error`; null if it is valid. */
export function modelFlagsFault({ dModel, heads, positions }: ModelFlags): string | null {
  if (dModel % heads !== 0) return `--heads ${heads} does not divide --d-model ${dModel}`;
  if (positions === 'rotary' && (dModel / heads) % 2 !== 0) {
    return (
      '--positions rotary needs heads of an even size, ' +
      `but --d-model ${dModel} / --heads ${heads} is ${dModel / heads}`
    );
  }
  return null;
}

export function modelOptionsOf(flags: ModelFlags): ModelOptions {
  const { dModel, dFf, dropout, attentionDropout, order, positions, activation, tie, bias } = flags;
  return {
    N: flags.layers,
    dModel,
    dFf,
    h: flags.heads,
    dropout,
    ...(attentionDropout === undefined ? {} : { attentionDropout }),
    norm: { kind: flags.norm },
    order,
    positions,
    activation,
    tie,
    bias,
  };
}
