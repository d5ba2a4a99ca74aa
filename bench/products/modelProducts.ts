/** The products of a model's linear layers: those that are measured, and those of a training step. */
import type { ModelSize } from '../sizes.js';

/** The three products of a linear layer with rows x, weight W and upstream gradient g. */
export const layouts = ['forward', 'inputGradient', 'weightGradient'] as const;
export type Layout = (typeof layouts)[number];

export const formulas: Readonly<Record<Layout, string>> = {
  forward: 'x Wᵀ',
  inputGradient: 'g W',
  weightGradient: 'gᵀ x',
};

/** A product over `tokens` rows of activations with a weight [output, input]. */
export interface Product {
  readonly layout: Layout;
  readonly tokens: number;
  readonly input: number;
  readonly output: number;
}

export interface CountedProduct extends Product {
  /** How often a step computes it; a fraction for the last rows of the generator. */
  readonly count: number;
}

/** A training step that computes no padding. */
export interface StepKind {
  readonly name: string;
  /** Rows of each side. */
  readonly rows: number;
}

export const steps: readonly StepKind[] = [
  { name: 'a batch of 50 pairs', rows: 735 },
  { name: 'a length bucket of 1,400 tokens', rows: 1400 },
  // As in suite `train`, where a side has 2,760 on average.
  { name: 'a length bucket of 3,000 tokens', rows: 3000 },
];

/** Rows of decoding, of small batches and of the steps above. */
const tokenCounts = [1, 2, 8, 32, 128, 400, ...steps.map(({ rows }) => rows)];

/** The op of generator and loss multiplies at most so many rows at a time. */
const generatorRows = 256;

/** A vocabulary with more ids than this is measured with those rows at most. */
const smallVocabulary = 32_000;

/** Sides of weights: attention projections, and feed-forward both ways. */
function layerWeights({ dModel, dFf }: ModelSize): [input: number, output: number][] {
  return [
    [dModel, dModel],
    [dModel, dFf],
    [dFf, dModel],
  ];
}

/** All that are measured, each once. */
export function measuredProducts(model: ModelSize): Product[] {
  const { dModel, vocabSize } = model;
  const few = tokenCounts.filter((tokens) => tokens < generatorRows);
  const generatorTokens = [...few, generatorRows, ...(vocabSize <= smallVocabulary ? [400] : [])];
  return layouts.flatMap((layout) => [
    ...layerWeights(model).flatMap(([input, output]) =>
      tokenCounts.map((tokens) => ({ layout, tokens, input, output })),
    ),
    ...generatorTokens.map((tokens) => ({ layout, tokens, input: dModel, output: vocabSize })),
  ]);
}

/** Those of one training step: forward, and the gradients of input and weight. */
export function stepProducts(model: ModelSize, { rows }: StepKind): CountedProduct[] {
  const { N, dModel, vocabSize } = model;
  // Queries, keys, values and output: once in each layer of the encoder, twice in the decoder.
  const projections = N * (4 + 8);
  const counts = [projections, 2 * N, 2 * N];
  return layouts.flatMap((layout) => [
    ...layerWeights(model).map(([input, output], index) => ({
      layout,
      tokens: rows,
      input,
      output,
      count: counts[index]!,
    })),
    {
      layout,
      tokens: generatorRows,
      input: dModel,
      output: vocabSize,
      count: rows / generatorRows,
    },
  ]);
}

/** Multiplications and additions. */
export function operationsOf({ tokens, input, output }: Product): number {
  return 2 * tokens * input * output;
}

/** As the program takes it, and as a key. */
export function nameOf({ layout, tokens, input, output }: Product): string {
  return `${layout}:${tokens}x${input}x${output}`;
}
