/** Builds seed 000's parts from the constructor arguments of the post's classes. */
import { Module, seed000 } from 'torchformer';
import type { ModuleList, Tensor } from 'torchformer';
import type { Case } from './fixtures.js';
import { argumentsOf, here, inMode, unary } from './subject.js';
import type { Arguments, Mode, Subject } from './subject.js';

type Order = 'pre' | 'post';
/** Empty for the classes' own dropout of 0.2. */
type DropoutOption = { dropout?: number };

export function buildSeed000(
  { module: name, options }: Pick<Case, 'module' | 'options'>,
  mode: Mode,
): Subject {
  const builder = builders[name];
  if (builder === undefined) throw new Error(`the fixtures have a module ${name} unknown here`);
  const dropout = mode === 'evaluation' ? {} : { dropout: 0 };
  return inMode(builder(argumentsOf(name, options), dropout), mode);
}

const builders: Record<string, (given: Arguments, off: DropoutOption) => Subject> = {
  'seed000.LayerNorm': ({ number }) => unary(new seed000.LayerNorm(number('d_model'))),

  'seed000.SubLayerConnection': ({ number, text, has }, off) => {
    const order = has('order') ? { order: text('order') as Order } : {};
    const module = new seed000.SubLayerConnection(number('d_model'), { ...off, ...order });
    return { module, run: (data) => ({ output: module.forward(here(data), (x) => x.tanh()) }) };
  },

  'seed000.FeedForward': ({ number }, off) =>
    unary(new seed000.FeedForward(number('d_model'), number('output_dim'), off)),

  'seed000.attention': () => ({
    module: null,
    run(query, key, value, mask = null) {
      const [C, weight] = seed000.attention(here(query), here(key), here(value), { mask });
      return { C, weight: here(weight) };
    },
  }),

  'seed000.MultiHeadAttention': ({ number }, off) => {
    const options = { ...off, keepAttention: true };
    const module = new seed000.MultiHeadAttention(number('d_model'), number('num_heads'), options);
    return {
      module,
      run(query, key, value, mask) {
        const output = module.forward(here(query), here(key), here(value), mask);
        return { output, weight: here(module.weight) };
      },
    };
  },

  'seed000.DecoderLayer': ({ number, text }, off) => {
    const [dModel, outputDim] = [number('d_model'), number('output_dim')];
    const order = text('order') as Order;
    const module = new DecoderLayer(dModel, outputDim, number('num_heads'), { ...off, order });
    return {
      module,
      run: (data, memory, mask) => ({
        output: module.forward(here(data), here(memory), here(mask)),
      }),
    };
  },
};

/** As a user would put one together; the post shows none. */
class DecoderLayer extends Module {
  static override readonly stateNames = {
    selfAttention: 'self_attention',
    crossAttention: 'cross_attention',
    feedForward: 'feed_forward',
  };

  selfAttention: seed000.MultiHeadAttention;
  crossAttention: seed000.MultiHeadAttention;
  feedForward: seed000.FeedForward;
  connections: ModuleList<seed000.SubLayerConnection>;

  constructor(
    dModel: number,
    outputDim: number,
    numHeads: number,
    { order, ...off }: DropoutOption & { order: Order },
  ) {
    super();
    this.selfAttention = new seed000.MultiHeadAttention(dModel, numHeads, off);
    this.crossAttention = new seed000.MultiHeadAttention(dModel, numHeads, off);
    this.feedForward = new seed000.FeedForward(dModel, outputDim, off);
    this.connections = seed000.clone(new seed000.SubLayerConnection(dModel, { ...off, order }), 3);
  }

  override forward(data: Tensor, memory: Tensor, mask: Tensor): Tensor {
    const { selfAttention, crossAttention, connections } = this;
    const masked = connections.at(0).forward(data, (x) => selfAttention.forward(x, x, x, mask));
    const crossed = connections
      .at(1)
      .forward(masked, (x) => crossAttention.forward(x, memory, memory));
    return connections.at(2).forward(crossed, this.feedForward);
  }
}
