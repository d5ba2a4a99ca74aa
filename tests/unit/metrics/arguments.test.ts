import { describe, expect, it } from 'vitest';
import {
  corpusBleu,
  corpusChrf,
  corpusTer,
  pairedBootstrap,
  scoreTranslations,
  sentenceBleu,
} from 'torchformer';

const bleu = (options: object) => () => corpusBleu(['a'], ['a'], options);

describe('arguments of metrics', () => {
  it('refuse numbers of texts that differ, and name both', () => {
    for (const metric of [corpusBleu, corpusChrf, corpusTer]) {
      expect(() => metric(['a', 'b', 'c'], ['a', 'b'])).toThrow(
        /there must be a reference for each hypothesis, got 3 hypotheses and 2 references$/,
      );
    }
  });

  it('say how references are passed if they come as in sacrebleu', () => {
    expect(() =>
      corpusBleu(
        ['a', 'b', 'c'],
        [
          ['a', 'b', 'c'],
          ['x', 'y', 'z'],
        ],
      ),
    ).toThrow(/pass for each hypothesis the list of its references$/);
  });

  it('refuse an empty corpus and a sentence without a reference', () => {
    expect(() => corpusBleu([], [])).toThrow('references is empty: there is nothing to score');
    expect(() => corpusBleu(['a'], [[]])).toThrow('references[0] has no text');
  });

  it('refuse what is not a text, and name it', () => {
    expect(() => corpusBleu(['a', 5 as never], ['a', 'b'])).toThrow(
      'hypotheses[1] must be a string, got 5',
    );
    expect(() => corpusBleu(['a'], [['a', null as never]])).toThrow(
      'references[0][1] must be a string, got null',
    );
    expect(() => corpusBleu('a' as never, ['a'])).toThrow('for a single string, pass [text]');
    expect(() => sentenceBleu('a', 7 as never)).toThrow('must be a text or a list of texts, got 7');
  });

  it('refuse unknown options and values', () => {
    expect(bleu({ tokenise: '13a' })).toThrow(/unknown option "tokenise"; valid options: /);
    expect(bleu({ tokenize: 'ja-mecab' })).toThrow("tokenize must be '13a', 'zh'");
    expect(bleu({ smoothMethod: 'exp', smoothValue: 1 })).toThrow(
      "smoothValue is for the smoothMethod 'floor' or 'add-k'",
    );
    expect(bleu({ smoothMethod: 'floor', smoothValue: 0 })).toThrow('a finite number above 0');
    expect(() => corpusChrf(['a'], ['a'], { charOrder: 0 })).toThrow('from 1 to 100');
    expect(() => corpusTer(['a'], ['a'], { normalized: 1 as never })).toThrow('true or false');
  });

  it('are checked by the functions for all metrics too', async () => {
    await expect(scoreTranslations(['a'], ['a', 'b'])).rejects.toThrow(RangeError);
    await expect(
      scoreTranslations(['a'], ['a'], { bleu: { lower: true } as never }),
    ).rejects.toThrow('scoreTranslations bleu: unknown option "lower"');
    await expect(pairedBootstrap(['a'], ['a', 'b'], ['a'])).rejects.toThrow(
      'pairedBootstrap system: there must be a reference for each hypothesis',
    );
    await expect(pairedBootstrap(['a'], ['b'], ['a'], { samples: 0 })).rejects.toThrow('samples');
  });
});
