/** Builds seed 002's parts; an argument that the fixture leaves out keeps the post's number. */
import { seed002 } from 'torchformer';
import type { Case } from './fixtures.js';
import { argumentsOf, here, inMode, unary } from './subject.js';
import type { Arguments, Mode, Subject } from './subject.js';

/** Empty for the classes' own dropout of 0.1. */
type DropoutOption = { dropout?: number };

export function buildSeed002(
  { module: name, options }: Pick<Case, 'module' | 'options'>,
  mode: Mode,
): Subject {
  const builder = builders[name];
  if (builder === undefined) throw new Error(`the fixtures have a module ${name} unknown here`);
  const dropout = mode === 'evaluation' ? {} : { dropout: 0 };
  return inMode(builder(argumentsOf(name, options), dropout), mode);
}

const builders: Record<string, (given: Arguments, off: DropoutOption) => Subject> = {
  'seed002.attention': () => ({
    module: null,
    run: (Q, K, V, mask) => ({
      output: seed002.attention(here(Q), here(K), here(V), here(mask)),
    }),
  }),

  'seed002.MultiHead': (given, off) => {
    const sizes = given.renamed({ width: 'dModel', heads: 'h' });
    const module = new seed002.MultiHead({ ...off, ...sizes });
    return {
      module,
      run: (Q, K, V, mask) => ({
        output: module.forward(here(Q), here(K), here(V), here(mask)),
      }),
    };
  },

  'seed002.PositionEmbedding': (given) =>
    unary(
      new seed002.PositionEmbedding(
        given.renamed({ words: 'vocabSize', positions: 'maxLen', width: 'dModel' }),
      ),
    ),

  'seed002.FullyConnectedOutput': (given, off) => {
    const sizes = given.renamed({ width: 'dModel', hidden: 'dFf' });
    return unary(new seed002.FullyConnectedOutput({ ...off, ...sizes }));
  },
};
