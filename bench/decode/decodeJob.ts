/** The input and output of the participants of suite `decode`. */
import type { SpecialIds } from 'torchformer';
import type { ModelSize } from '../sizes.js';
import type { SearchCase } from './decodeModels.js';
import type { Precision } from './decoders.js';

/** Sources and a model of the defaults of `makeModel`, which the peers can compute. */
export interface PreparedDecoding {
  readonly model: ModelSize;
  /** Number of positions in its table. */
  readonly maxLen: number;
  /** As safetensors with PyTorch's names. */
  readonly weights: string;
  readonly specialIds: SpecialIds;
  /** Source ids with bos and eos. */
  readonly sources: readonly (readonly number[])[];
  /** What `SequenceGenerator` of this version of the package can compute with; empty without it. */
  readonly ownPrecisions: readonly Precision[];
}

export interface DecodeCase extends SearchCase {
  readonly name: string;
  /** How many of the sources are decoded, in batches of `batch`. */
  readonly sentences: number;
  /** Largest number of tokens of a target. */
  readonly maxLength: number;
}

export interface DecodeJob extends PreparedDecoding {
  /** Folder of the same weights for CTranslate2. */
  readonly ctranslate2: string;
  readonly threads: number;
  readonly cases: readonly DecodeCase[];
  /** A case is repeated until it has taken so long, and at least once. */
  readonly seconds: number;
}

/** What a participant says of a case. */
export interface CaseResult {
  /** Of each repetition. */
  readonly seconds: readonly number[];
  /** Targets of the last repetition, without bos and eos. */
  readonly ids: readonly (readonly number[])[];
}

/** The JSON line that a participant prints. */
export interface DecodeResult {
  readonly cases: Readonly<Record<string, CaseResult>>;
  /** The program and what it computes with. */
  readonly version: string;
  readonly peakRss: number;
}
