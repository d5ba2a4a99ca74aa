/** Rows of vocabulary tables, matched by token between two tokenizers. */
import type { Tokenizer } from '../data/tokenizers/tokenizer.js';
import { tensor } from '../tensor/create.js';
import { tidy } from '../tensor/scope.js';
import type { Tensor } from '../tensor/tensor.js';

/** How the tokens of a model's tokenizer were found in the saved one. */
export interface TokenMatch {
  /** Number of tokens that both have. */
  readonly matched: number;
  /** Tokens that only the model's tokenizer has: their rows keep the drawn values. */
  readonly drawn: readonly string[];
  /** Tokens that only the saved tokenizer has. */
  readonly unused: readonly string[];
}

/** Pairs of ids of the same token. */
export class VocabularyRows {
  readonly match: TokenMatch;
  /** Whether every token has the same id in both tokenizers, and none has tokens of its own. */
  readonly isIdentity: boolean;
  readonly #pairs: readonly (readonly [own: number, saved: number])[];

  /** @param renamed saved names of tokens that are named differently in the model's tokenizer */
  constructor(own: Tokenizer, saved: Tokenizer, renamed: Readonly<Record<string, string>>) {
    const pairs: [number, number][] = [];
    const drawn: string[] = [];
    const used = new Set<number>();
    for (let id = 0; id < own.vocabSize; id++) {
      const token = own.tokenOf(id);
      if (token === undefined) continue;
      const savedId = saved.idOf(
        Object.hasOwn(renamed, token) ? (renamed[token] as string) : token,
      );
      if (savedId === undefined) {
        drawn.push(token);
      } else {
        pairs.push([id, savedId]);
        used.add(savedId);
      }
    }
    const unused: string[] = [];
    for (let id = 0; id < saved.vocabSize; id++) {
      const token = used.has(id) ? undefined : saved.tokenOf(id);
      if (token !== undefined) unused.push(token);
    }
    this.#pairs = pairs;
    this.match = { matched: pairs.length, drawn, unused };
    this.isIdentity =
      drawn.length === 0 && unused.length === 0 && pairs.every(([id, savedId]) => id === savedId);
  }

  /**
   * A copy of a table with the rows of all matched tokens from another.
   *
   * @param own `[own ids, …]`
   * @param saved `[saved ids, …]`, with the same further dimensions
   * @returns as `own`, on the CPU
   */
  filled(own: Tensor, saved: Tensor): Tensor {
    const [ownRows, savedRows] = [own.shape[0] as number, saved.shape[0] as number];
    // A table may have fewer rows than its tokenizer has ids.
    const pairs = this.#pairs.filter(([id, savedId]) => id < ownRows && savedId < savedRows);
    return tidy(() => {
      const ids = (side: 0 | 1) => tensor(BigInt64Array.from(pairs, (pair) => BigInt(pair[side])));
      const rows = saved.indexSelect(0, ids(1)).to({ dtype: own.dtype });
      return own.detach().to({ device: 'cpu' }).indexCopy(0, ids(0), rows);
    });
  }
}
