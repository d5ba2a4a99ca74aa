/** `torchformer evaluate`, as a user calls it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  corpusBleu,
  corpusChrf,
  corpusTer,
  evaluate,
  formatScore,
  batches,
  saveModel,
  type BleuScore,
  type MetricScore,
} from 'torchformer';
import { runCommand } from '../process/support.js';
import { fiftyPairs, tinyModel, tinyTask } from '../support/tinyTranslation.js';

const folder = mkdtempSync(join(tmpdir(), 'torchformer-evaluate-'));
const file = (name: string) => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Five sentences, and a row without a target. */
const targets = [
  'a man stands on a ladder and cleans a window',
  'two dogs are playing in the snow',
  '',
  'it rains in the town today',
  'the train leaves at ten from the platform',
  'nobody knows',
];
const written = [
  'a man is on a ladder and cleans a window',
  'two dogs are playing in the snow',
  'not scored',
  'it rains in town today',
  'at ten the train leaves the platform',
  '',
];
const kept = [0, 1, 3, 4, 5];
const of = (texts: readonly string[]) => kept.map((row) => texts[row]!);

interface Report {
  readonly sentences: number;
  readonly empty: number;
  readonly loss: number | null;
  readonly perplexity: number | null;
  readonly accuracy: number | null;
  readonly targetTokens: number | null;
  readonly bleu: BleuScore;
  readonly chrf: MetricScore;
  readonly ter: MetricScore;
  readonly search: { readonly tokens: number; readonly beam: number } | null;
  readonly against: { readonly name: string; readonly bleu: { readonly pValue: number } } | null;
}

function run(...args: string[]) {
  return runCommand(['evaluate', '--src', 'src', '--tgt', 'tgt', ...args]);
}

function report(...args: string[]): Report {
  const { status, output, errors } = run('--json', ...args);
  if (status !== 0) throw new Error(errors);
  return JSON.parse(output) as Report;
}

beforeAll(async () => {
  const rows = targets.map((target, row) => `sentence ${row},${target}`);
  writeFileSync(file('texts.csv'), `src,tgt\n${rows.join('\n')}\n`);
  writeFileSync(file('written.txt'), `${written.join('\n')}\n`);
  const numbers = fiftyPairs.slice(0, 12).map(({ src, tgt }) => `${src},${tgt}`);
  writeFileSync(file('numbers.csv'), `src,tgt\n${numbers.join('\n')}\n`);
  const { tokenizer, specialIds } = await tinyTask();
  const model = tinyModel(tokenizer.vocabSize);
  await saveModel(file('model'), model, { tokenizer, specialIds });
  model.dispose();
});

describe('given translations', () => {
  const texts = ['--data', file('texts.csv'), '--score', file('written.txt')];

  test('are scored without a model: BLEU, chrF and TER with their signatures', () => {
    const { status, output, errors } = run(...texts);
    expect(status).toBe(0);
    const [hypotheses, references] = [of(written), of(targets)];
    expect(output.split('\n')).toEqual([
      formatScore(corpusBleu(hypotheses, references)),
      formatScore(corpusChrf(hypotheses, references)),
      formatScore(corpusTer(hypotheses, references)),
      '5 sentences, 1 of them empty',
      '',
    ]);
    expect(errors).toContain('5 pairs kept of 6 rows; left out: 1 empty (row 3)');
  });

  test('need no libtorch', () => {
    const changes = { TORCHFORMER_LIBTORCH: file('nothing'), TORCHFORMER_ADDON: file('nothing') };
    const args = ['evaluate', '--src', 'src', '--tgt', 'tgt', ...texts];
    expect(runCommand(args, changes).status).toBe(0);
  });

  test('are scored with other settings on request', () => {
    const { bleu, chrf } = report(...texts, '--tokenize', 'char', '--chrf-words', '2');
    expect(bleu).toEqual(corpusBleu(of(written), of(targets), { tokenize: 'char' }));
    expect(chrf).toEqual(corpusChrf(of(written), of(targets), { wordOrder: 2 }));
  });

  test('may have a line for each scored row only', () => {
    writeFileSync(file('kept.txt'), `${of(written).join('\n')}\n`);
    const all = report(...texts);
    const same = report('--data', file('texts.csv'), '--score', file('kept.txt'));
    expect(same).toEqual({ ...all, score: file('kept.txt') });
  });

  test('are compared with other translations', () => {
    writeFileSync(file('perfect.txt'), `${targets.join('\n')}\n`);
    const against = ['--against', file('perfect.txt'), '--bootstrap', '50', '--seed', '3'];
    const { status, output } = run(...texts, ...against);
    expect(status).toBe(0);
    expect(output).toContain(`\nagainst ${file('perfect.txt')} (50 samples, seed 3):\nBLEU `);
    expect(output).toMatch(
      /\nTER \d+\.\d\d \(\d+\.\d\d ± \d+\.\d\d\) against 0\.00 .*, p = 0\.\d{4}/,
    );
    expect(report(...texts, ...against).against?.bleu.pValue).toBeGreaterThan(0);
  });
});

describe('a model', () => {
  const model = ['--data', file('numbers.csv'), '--model', file('model'), '--threads', '1'];

  test('has loss, perplexity and accuracy, and its translations are scored and written', async () => {
    const { loss, perplexity, accuracy, targetTokens, search, sentences, bleu } = report(
      ...model,
      ...['--max-length', '8', '--beam', '2', '--output', file('out.txt')],
    );
    const { tokenizer, specialIds, dataset } = await tinyTask(fiftyPairs.slice(0, 12));
    const { pad } = specialIds;
    const options = { pad, accuracy: true };
    const own = await evaluate(tinyModel(tokenizer.vocabSize), batches(dataset), options);
    expect(loss).toBeCloseTo(own.loss, 5);
    expect(perplexity).toBeCloseTo(own.perplexity, 4);
    expect(accuracy).toBe(own.accuracy);
    expect(targetTokens).toBe(own.tokens);
    expect(sentences).toBe(12);
    expect(search?.beam).toBe(2);
    const lines = readFileSync(file('out.txt'), 'utf8').split('\n');
    expect(lines).toHaveLength(13);
    const references = fiftyPairs.slice(0, 12).map(({ tgt }) => tgt);
    expect(bleu).toEqual(corpusBleu(lines.slice(0, 12), references));
  });

  test('translates as the command translate does', () => {
    run(...model, '--max-length', '8', '--output', file('evaluated.txt'));
    const sources = fiftyPairs.slice(0, 12).map(({ src }) => src);
    const translate = ['translate', '--model', file('model'), '--max-length', '8', ...sources];
    expect(readFileSync(file('evaluated.txt'), 'utf8')).toBe(runCommand(translate).output);
  });

  test('has its loss beside the scores of given translations, without translating', () => {
    const { loss, search } = report(...model, '--score', file('evaluated.txt'));
    expect(loss).toBeGreaterThan(0);
    expect(search).toBeNull();
  });

  test('is compared with another model', () => {
    const { against } = report(
      ...model,
      ...['--max-length', '8', '--against', file('model'), '--bootstrap', '10'],
    );
    expect(against?.name).toBe(file('model'));
    expect(against?.bleu.pValue).toBe(1);
  });
});

describe('bad input is refused, and named', () => {
  const data = ['--data', file('texts.csv')];
  beforeAll(() => {
    writeFileSync(file('short.txt'), 'one\ntwo\n');
    writeFileSync(file('latin.txt'), Buffer.from('one\ncaf\xe9\n', 'latin1'));
    writeFileSync(file('empty.csv'), '');
    writeFileSync(file('header.csv'), 'src,tgt\n');
    writeFileSync(file('long.csv'), `src,tgt\none,21\n${'twenty one '.repeat(9)},21\n`);
  });

  test.each([
    ['nothing to evaluate', data, 'use --model <folder>, --score <file>, or both'],
    [
      'too few lines',
      [...data, '--score', file('short.txt')],
      /short\.txt has 2 lines, but .*texts\.csv has 6 rows, 5 of them with source and target/,
    ],
    [
      'too few lines to compare with',
      [...data, '--score', file('written.txt'), '--against', file('short.txt')],
      /short\.txt has 2 lines, but .*texts\.csv has 6 rows/,
    ],
    ['not UTF-8', [...data, '--score', file('latin.txt')], /latin\.txt: line 2: .*UTF-8/],
    ['a missing file', [...data, '--score', file('none.txt')], /none\.txt/],
    [
      'empty data',
      ['--data', file('empty.csv'), '--score', file('short.txt')],
      /the file is empty/,
    ],
    ['no rows', ['--data', file('header.csv'), '--score', file('short.txt')], /header but no rows/],
    [
      'a flag that has no effect',
      [...data, '--score', file('written.txt'), '--beam', '5'],
      '--beam is for translating, but --score has the translations already',
    ],
    [
      'an output without translating',
      [...data, '--score', file('written.txt'), '--output', file('x')],
      '--output is for the translations of --model',
    ],
    ['a seed alone', [...data, '--score', file('written.txt'), '--seed', '1'], '--seed is for'],
    [
      'a source that is too long',
      ['--data', file('long.csv'), '--model', file('model')],
      /row 2 of .*long\.csv has \d+ tokens .* accepts 32; split it, or use --on-too-long skip/,
    ],
  ])('%s', (_name, args, message) => {
    const { status, output, errors } = run(...args);
    expect(errors).toMatch(message);
    expect(status).toBe(1);
    expect(output).toBe('');
  });

  test('but a source that is too long can count as an empty translation', () => {
    const { status, errors, output } = run(
      ...['--data', file('long.csv'), '--model', file('model')],
      ...['--on-too-long', 'skip', '--max-length', '8'],
    );
    expect(status).toBe(0);
    expect(errors).toContain('too long for the model, with empty translations: 1 source (row 2)');
    expect(errors).toContain('loss: the pairs: 1 pair kept of 2 rows');
    expect(output).toContain('2 sentences, 1 of them empty');
  });
});
