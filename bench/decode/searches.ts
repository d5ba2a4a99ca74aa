/** Our ways to decode, behind one interface. */
import * as torchformer from 'torchformer';
import type { Transformer } from 'torchformer';
import type { PreparedDecoding } from './decodeJob.js';
import type { DecoderName, Precision } from './decodeParticipants.js';

export interface SearchSettings {
  /** Hypotheses per sentence; 1 is greedy search. */
  readonly beam: number;
  /** Largest number of tokens of a target. */
  readonly maxLength: number;
}

/** Decodes one batch of sources, which have bos and eos; the targets have neither. */
export type Search = (
  sources: readonly (readonly number[])[],
  settings: SearchSettings,
) => Promise<readonly (readonly number[])[]>;

/** The search of `ours` or `recompute`. */
export function searchOf(
  decoder: DecoderName,
  model: Transformer,
  { specialIds }: Pick<PreparedDecoding, 'specialIds'>,
  precision: Precision,
): Search {
  if (decoder === 'recompute') return recomputingSearch(model, specialIds);
  return generatorSearch(model, specialIds, precision);
}

/** As the seeds decode: the whole prefix again for every token. */
function recomputingSearch(model: Transformer, specialIds: torchformer.SpecialIds): Search {
  const { greedy, padSequences, paddingMask } = torchformer;
  return async (sources, { maxLength }) => {
    const src = padSequences(sources, specialIds.pad);
    const srcMask = paddingMask(src, specialIds.pad);
    const decoded = await greedy(model, src, srcMask, { ...specialIds, maxLength });
    src.dispose();
    srcMask.dispose();
    return decoded.map(({ ids }) => ids);
  };
}

/** What is used of `SequenceGenerator`. */
interface GeneratorClass {
  new (
    model: Transformer,
    options: { specialIds: torchformer.SpecialIds; precision: Precision },
  ): {
    generate(
      sources: readonly (readonly number[])[],
      options: {
        beam: number;
        maxLength: number;
        lengthPenalty: { kind: 'power'; alpha: number };
      },
    ): Promise<{ readonly ids: readonly number[] }[][]>;
  };
}

/** Null if this version of the package does not have it. */
export function generatorClass(): GeneratorClass | null {
  const { SequenceGenerator } = torchformer as { SequenceGenerator?: unknown };
  return SequenceGenerator === undefined ? null : (SequenceGenerator as GeneratorClass);
}

function generatorSearch(
  model: Transformer,
  specialIds: torchformer.SpecialIds,
  precision: Precision,
): Search {
  const SequenceGenerator = generatorClass();
  if (SequenceGenerator === null) throw new Error('this version has no SequenceGenerator');
  const generator = new SequenceGenerator(model, { specialIds, precision });
  return async (sources, { beam, maxLength }) => {
    // CTranslate2's default: scores are divided by the length.
    const lengthPenalty = { kind: 'power', alpha: 1 } as const;
    const found = await generator.generate(sources, { beam, maxLength, lengthPenalty });
    return found.map(([best]) => best?.ids ?? []);
  };
}
