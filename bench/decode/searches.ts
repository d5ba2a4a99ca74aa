/** Our ways to decode, behind one interface. */
import * as torchformer from 'torchformer';
import type { Transformer } from 'torchformer';
import type { PreparedDecoding } from './decodeJob.js';
import { precisions, type DecoderName, type Precision } from './decoders.js';

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
    options: { specialIds: torchformer.SpecialIds; precision?: Precision },
  ): {
    generate(
      sources: readonly (readonly number[])[],
      options: { beam: number; maxLength: number },
    ): Promise<{ readonly ids: readonly number[] }[][]>;
  };
}

/** Null if this version of the package does not have it. */
function generatorClass(): GeneratorClass | null {
  const { SequenceGenerator } = torchformer as { SequenceGenerator?: unknown };
  return SequenceGenerator === undefined ? null : (SequenceGenerator as GeneratorClass);
}

/** What `SequenceGenerator` of this version of the package can compute with; empty without it. */
export function ownPrecisions(model: Transformer, specialIds: torchformer.SpecialIds): Precision[] {
  return precisions.filter((precision) => {
    try {
      return makeGenerator(model, specialIds, precision) !== null;
    } catch (error) {
      // It does not know the option.
      if (error instanceof TypeError) return false;
      throw error;
    }
  });
}

function makeGenerator(
  model: Transformer,
  specialIds: torchformer.SpecialIds,
  precision: Precision,
): InstanceType<GeneratorClass> | null {
  const SequenceGenerator = generatorClass();
  if (SequenceGenerator === null) return null;
  const options = precision === 'float32' ? { specialIds } : { specialIds, precision };
  return new SequenceGenerator(model, options);
}

function generatorSearch(
  model: Transformer,
  specialIds: torchformer.SpecialIds,
  precision: Precision,
): Search {
  const generator = makeGenerator(model, specialIds, precision);
  if (generator === null) throw new Error('this version has no SequenceGenerator');
  return async (sources, settings) => {
    // With a beam, its scores are by default divided by the length, as CTranslate2's.
    const found = await generator.generate(sources, settings);
    return found.map(([best]) => best?.ids ?? []);
  };
}
