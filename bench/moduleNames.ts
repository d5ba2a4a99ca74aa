/** The names of the cases of suite `modules`, for the report; unlike the cases, it needs no addon. */

/** B sentences, S tokens, the rest as in `makeModel`. */
export const moduleShape = {
  B: 50,
  S: 20,
  dModel: 512,
  dFf: 2048,
  h: 8,
  vocabSize: 8000,
  dropout: 0.1,
} as const;

/** Titles of the cases, by the names that participants use. */
export const moduleNames = {
  layerNorm: 'LayerNorm',
  attention: 'MultiHeadedAttention, padding mask',
  feedForward: 'PositionwiseFeedForward',
  sublayer: 'SublayerConnection of nothing',
  embedding: 'embedding and positions',
  generatorLoss: 'Generator and loss',
} as const;

export type ModuleName = keyof typeof moduleNames;
