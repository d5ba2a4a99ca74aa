import {
  checkArray,
  checkInteger,
  checkObject,
  checkOptions,
  describe,
} from '../../runtime/arguments.js';
import { checkTokenizer, type Tokenizer } from './tokenizer.js';

/** The ids that frame and pad sequences. */
export interface SpecialIds {
  /** Pads batches, is masked in attention and ignored by the loss. */
  pad: number;
  /** Begins every sequence. */
  bos: number;
  /** Ends every sequence. */
  eos: number;
}

type Role = keyof SpecialIds;
const roles: readonly Role[] = ['pad', 'bos', 'eos'];

/** Options of {@link findSpecialIds}: the ids that are known. */
export interface SpecialIdOptions {
  /** The id, or the token as in the vocabulary. Default: the first usual name in the vocabulary. */
  pad?: number | string | undefined;
  /** Like `pad`. */
  bos?: number | string | undefined;
  /** Like `pad`. */
  eos?: number | string | undefined;
}

/** The ids, with how they were chosen, to show to the user. */
export interface SpecialTokens extends SpecialIds {
  /** The tokens of the three ids as in the vocabulary. */
  tokens: Record<Role, string>;
  /** Which of the three were not given, but found by their usual names. */
  detected: Role[];
}

/**
 * The usual names, the most specific first. `<|endoftext|>` ends a text in vocabularies that have
 * it, but if these also have a token for the end of a turn, it is free to be used for padding.
 */
const usualNames: Record<Role, readonly string[]> = {
  pad: ['[PAD]', '<pad>', '<PAD>', '<|pad|>', '<|finetune_right_pad_id|>', '<|endoftext|>'],
  bos: [
    '[BOS]',
    '<bos>',
    '<BOS>',
    '<s>',
    '<|startoftext|>',
    '<|begin_of_text|>',
    '<|im_start|>',
    '[CLS]',
  ],
  eos: [
    '[EOS]',
    '<eos>',
    '<EOS>',
    '</s>',
    '<|end_of_text|>',
    '<|im_end|>',
    '[SEP]',
    '<|endoftext|>',
  ],
};

/**
 * Finds the ids of pad, bos and eos in a tokenizer: those given, else by the first usual name.
 *
 * @throws TypeError if one is neither given nor found, or a given token is not in the vocabulary
 * @throws RangeError if an id is outside the vocabulary, or two of the three are equal: if pad and
 * eos were equal, the loss would ignore the ends of sentences and the model never learn to stop
 */
export function findSpecialIds(tokenizer: Tokenizer, options?: SpecialIdOptions): SpecialTokens {
  const owner = 'findSpecialIds';
  checkTokenizer(owner, tokenizer);
  checkOptions(owner, options, roles);
  const ids: Partial<SpecialIds> = {};
  const detected: Role[] = [];
  for (const role of roles) {
    const given = options?.[role];
    if (given !== undefined) ids[role] = idOfGiven(tokenizer, role, given);
  }
  for (const role of roles) {
    if (ids[role] !== undefined) continue;
    const taken = Object.values(ids);
    const found = usualNames[role]
      .map((name) => tokenizer.idOf(name))
      .find((id) => id !== undefined && !taken.includes(id));
    if (found === undefined) {
      throw new TypeError(
        `${owner}: the tokenizer has no free token with a usual name for ${role} ` +
          `(${usualNames[role].join(', ')}); pass the option ${role}, as an id or a token`,
      );
    }
    ids[role] = found;
    detected.push(role);
  }
  const complete = ids as SpecialIds;
  checkSpecialIds(complete, tokenizer.vocabSize, owner);
  const tokens = Object.fromEntries(
    roles.map((role) => [role, tokenizer.tokenOf(complete[role]) ?? '']),
  ) as Record<Role, string>;
  return { ...complete, tokens, detected };
}

/**
 * Checks ids against the size of a vocabulary, of a tokenizer or a model.
 *
 * @throws TypeError, RangeError as {@link findSpecialIds}
 */
export function checkSpecialIds(ids: SpecialIds, vocabSize: number, owner = 'specialIds'): void {
  checkObject(owner, 'specialIds', ids, '{ pad, bos, eos }');
  checkInteger(owner, 'vocabSize', vocabSize, 1);
  for (const role of roles) {
    const id = ids[role];
    if (!Number.isInteger(id)) {
      throw new TypeError(`${owner}: ${role} must be an integer id, got ${describe(id)}`);
    }
    if (id < 0 || id >= vocabSize) {
      throw new RangeError(
        `${owner}: ${role} must be an id from 0 to ${vocabSize - 1} (the vocabulary has ${vocabSize}), got ${id}`,
      );
    }
  }
  if (ids.pad === ids.eos) {
    throw new RangeError(
      `${owner}: pad and eos are both ${ids.pad}; the loss ignores pad, so the model would never ` +
        `learn to end a sentence; choose another id for pad`,
    );
  }
  if (ids.bos === ids.pad || ids.bos === ids.eos) {
    const other = ids.bos === ids.pad ? 'pad' : 'eos';
    throw new RangeError(`${owner}: bos and ${other} are both ${ids.bos}; they must differ`);
  }
}

/** Formats the ids as one line: `pad 0 "<pad>" (found), bos 1 "<bos>" (given), …`. */
export function describeSpecialIds(special: SpecialTokens): string {
  const owner = 'describeSpecialIds';
  const { tokens, detected } = checkObject(
    owner,
    'special',
    special,
    'the result of findSpecialIds',
  );
  checkObject(owner, 'special.tokens', tokens, '{ pad, bos, eos } with the tokens');
  checkArray(owner, 'special.detected', detected, 'an array');
  return roles
    .map((role) => {
      const how = special.detected.includes(role) ? 'found' : 'given';
      const id = checkInteger(owner, `special.${role}`, special[role], 0);
      return `${role} ${id} ${JSON.stringify(special.tokens[role])} (${how})`;
    })
    .join(', ');
}

function idOfGiven(tokenizer: Tokenizer, role: Role, given: number | string): number {
  if (typeof given === 'number') return given;
  if (typeof given !== 'string') {
    throw new TypeError(`findSpecialIds: ${role} must be an id or a token, got ${describe(given)}`);
  }
  const id = tokenizer.idOf(given);
  if (id === undefined) {
    throw new TypeError(
      `findSpecialIds: ${role} ${JSON.stringify(given)} is not in the vocabulary of the tokenizer`,
    );
  }
  return id;
}
