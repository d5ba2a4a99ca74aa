/** Our side of suite `modules`: the parts of the model to measure. `peers/modules.py` has the same. */
import {
  Generator,
  LayerNorm,
  linearCrossEntropy,
  MultiHeadedAttention,
  ops,
  PositionalEncoding,
  PositionwiseFeedForward,
  Sequential,
  SublayerConnection,
  TransformerEmbedding,
  type Module,
  type Tensor,
} from 'torchformer';
import { moduleShape, type ModuleName } from './moduleNames.js';

/** The inputs of all cases. */
export interface ModuleInputs {
  /** `[B, S, dModel]` */
  readonly x: Tensor;
  /** The gradient of the outputs, `[B, S, dModel]`. */
  readonly upstream: Tensor;
  /** Token ids, int64 `[B, S]`, 0 for padding. */
  readonly ids: Tensor;
  /** True for tokens, false for padding; bool `[B, 1, S]`. */
  readonly mask: Tensor;
}

export interface ModuleCase {
  readonly module: Module;
  /** `[B, S, dModel]`, or the loss. */
  readonly run: (inputs: ModuleInputs) => Tensor;
}

/** The cases by the names that the peer uses. */
export function moduleCases(): Readonly<Record<ModuleName, ModuleCase>> {
  const { dModel, dFf, h, vocabSize, dropout } = moduleShape;
  const norm = new LayerNorm(dModel);
  const attention = new MultiHeadedAttention(h, dModel, { dropout });
  const feedForward = new PositionwiseFeedForward(dModel, dFf, { dropout });
  const sublayer = new SublayerConnection(dModel, { dropout });
  const embedding = new Sequential(
    new TransformerEmbedding(dModel, vocabSize),
    new PositionalEncoding(dModel, { dropout }),
  );
  const generator = new Generator(dModel, vocabSize);
  return {
    layerNorm: { module: norm, run: ({ x }) => norm.forward(x) },
    attention: {
      module: attention,
      run: ({ x, mask }) => attention.forward(x, x, x, mask),
    },
    feedForward: {
      module: feedForward,
      run: ({ x }) => feedForward.forward(x),
    },
    sublayer: {
      module: sublayer,
      run: ({ x }) => sublayer.forward(x, (y) => y),
    },
    embedding: {
      module: embedding,
      run: ({ ids }) => embedding.forward(ids),
    },
    generatorLoss: {
      module: generator,
      // As in the Trainer: padding rows are skipped.
      run: ({ x, ids }) => {
        const targets = ids.flatten();
        const rows = ops.aten.nonzero(targets.ne(0)).squeeze(1);
        const input = x.flatten(0, 1).indexSelect(0, rows);
        return linearCrossEntropy(input, generator.proj, targets.indexSelect(0, rows)).loss;
      },
    },
  };
}
