import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cuda, loadModel } from 'torchformer';
import { fiftyPairs } from '../support/tinyTranslation.js';

const command = fileURLToPath(new URL('../../bin/torchformer.js', import.meta.url));

function torchformer(args: string[], input = '') {
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, ...args], {
    encoding: 'utf8',
    input,
  });
  return { status, stdout, stderr };
}

let root: string;
let trainFile: string;
let validateFile: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'torchformer-command-'));
  trainFile = join(root, 'train.csv');
  validateFile = join(root, 'validate.csv');
  const rows = fiftyPairs.map(({ src, tgt }) => `${tgt},${src}`);
  // A byte order mark, CRLF, columns in any order, and a row without a source.
  writeFileSync(trainFile, `\ufeff${['digits,words', ...rows, '7,'].join('\r\n')}\r\n`);
  writeFileSync(validateFile, `digits,words\n${rows.slice(0, 10).join('\n')}\n`);
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const trainArgs = (out: string, ...more: string[]) => [
  'train',
  ...['--train', trainFile, '--validate', validateFile, '--src', 'words', '--tgt', 'digits'],
  ...['--out', out, '--vocab-size', '320', '--layers', '1', '--d-model', '32', '--d-ff', '64'],
  ...['--heads', '4', '--dropout', '0', '--attention-dropout', '0', '--max-length', '32'],
  ...['--threads', '1', ...more],
];

describe('torchformer train --dry-run', () => {
  test('tells memory and time, and writes nothing', () => {
    const out = join(root, 'dry');
    const { status, stderr } = torchformer(trainArgs(out, '--epochs', '3', '--dry-run'));
    expect(stderr).toMatch(
      /^memory: [\d.]+ MB = weights [\d.]+ \+ gradients [\d.]+ \+ Adam [\d.]+ \+ batch [\d.]+ \(the largest, \d+ tokens\); [\d.]+ GB available$/m,
    );
    expect(stderr).toMatch(/^time: \S+( s)? an epoch, \S+( s)? in all$/m);
    expect(stderr).not.toContain('epoch 1');
    expect(status).toBe(0);
    expect(existsSync(out)).toBe(false);
  });
});

describe('torchformer train, then torchformer translate', () => {
  let out: string;
  let trained: ReturnType<typeof torchformer>;
  beforeAll(() => {
    out = join(root, 'run');
    trained = torchformer(
      trainArgs(
        out,
        '--epochs',
        '40',
        '--batch-size',
        '25',
        '--lr',
        '3e-3',
        '--warmup',
        '10',
        '--bucket',
      ),
    );
  });

  test('training succeeds, tells what became of the rows, and names the best model', () => {
    expect(trained.stderr).toContain(
      `${trainFile}: 50 pairs kept of 51 rows; left out: 1 empty (row 51)`,
    );
    expect(trained.stderr).toContain(
      'pad 0 "<pad>" (found), bos 1 "<bos>" (found), eos 2 "<eos>" (found)',
    );
    expect(trained.stderr).toMatch(/epoch 40\/40 {2}train \d\.\d{4} {2}validation \d\.\d{4}/);
    expect(trained.stdout).toMatch(/^.*best: epoch \d+, validation loss \d\.\d{4}\n$/);
    expect(trained.status).toBe(0);
    expect(readdirSync(out).sort()).toEqual([
      'best',
      'config.yaml',
      'history.json',
      'last',
      'log.jsonl',
      'loss.svg',
      'report.html',
    ]);
  });

  test('texts as arguments give one line of output each', () => {
    const { status, stdout } = torchformer([
      'translate',
      '--model',
      out,
      'twenty one',
      '',
      'sixty',
    ]);
    expect(stdout.split('\n')).toHaveLength(4);
    expect(stdout).toMatch(/^\d+\n\n\d+\n$/);
    expect(status).toBe(0);
  });

  test('lines of standard input give the same, whatever the line ends', () => {
    const expected = torchformer(['translate', '--model', out, 'twenty one', '', 'sixty']).stdout;
    for (const input of ['twenty one\n\nsixty\n', 'twenty one\r\n\r\nsixty']) {
      expect(torchformer(['translate', '--model', out], input)).toEqual({
        status: 0,
        stdout: expected,
        stderr: '',
      });
    }
    expect(torchformer(['translate', '--model', out]).stdout).toBe('');
  });

  test('lines that come one by one are answered one by one', async () => {
    const child = spawn(process.execPath, [command, 'translate', '--model', out]);
    const answers: string[] = [];
    const exit = new Promise<number | null>((resolve) => child.on('exit', resolve));
    for (const text of ['twenty', 'thirty']) {
      child.stdin.write(`${text}\n`);
      answers.push(String(await new Promise((resolve) => child.stdout.once('data', resolve))));
    }
    child.stdin.end();
    expect(await exit).toBe(0);
    expect(answers.every((answer) => /^.*\n$/.test(answer))).toBe(true);
  });

  test('a reader that leaves early is no fault', () => {
    const script = `yes twenty | head -200 | "$0" "$1" translate --model "$2" --batch-size 1 | head -1; echo "\${PIPESTATUS[2]}"`;
    const { stdout } = spawnSync('bash', ['-c', script, process.execPath, command, out], {
      encoding: 'utf8',
    });
    expect(stdout).toMatch(/^.*\n0\n$/);
  });

  test('a line that is too long is an error that names it', () => {
    const { status, stderr } = torchformer(
      ['translate', '--model', out],
      `twenty\n${'xyz'.repeat(20)}\n`,
    );
    expect(status).toBe(1);
    expect(stderr).toMatch(
      /line 2 of the input has \d+ tokens \(with bos and eos\), but the model accepts 32; split it/,
    );
  });

  test('the folder is not used for another run unless it may be', () => {
    const { status, stderr } = torchformer(trainArgs(out, '--epochs', '1'));
    expect(status).toBe(1);
    expect(stderr).toContain(`${out} has the models of an earlier run (best/, last/)`);
    expect(stderr).toContain('--overwrite');
  });

  test('its tokenizer trains another model, on batches of so many tokens', async () => {
    const tokenizer = join(out, 'best', 'tokenizer.json');
    const other = join(root, 'other');
    const { status, stderr } = torchformer(
      trainArgs(
        other,
        '--tokenizer',
        tokenizer,
        '--epochs',
        '1',
        '--dtype',
        'float64',
        '--accumulate',
        '2',
        '--clip',
        '1',
        '--schedule',
        'noam',
        '--eos',
        '<eos>',
        '--samples',
        '0',
        '--batch-tokens',
        '40',
      ),
    );
    expect(stderr).toContain('eos 2 "<eos>" (given)');
    expect(status).toBe(0);
    const loaded = await loadModel(other);
    // The default, 50 pairs, would be one step.
    expect(loaded.config.training?.['step']).toBeGreaterThan(2);
    loaded.model.dispose();
  });
});

test('--dtype bf16 trains in bfloat16 products, and the model that it saves is float32', async () => {
  const out = join(root, 'bf16');
  const { status, stderr } = torchformer(
    trainArgs(out, '--dtype', 'bf16', '--epochs', '1', '--samples', '0'),
  );
  expect(status, stderr).toBe(0);
  const { model, config } = await loadModel(join(out, 'last'));
  expect(model.parameters().every(({ dtype }) => dtype === 'float32')).toBe(true);
  expect(config.training?.['trainLoss']).toBeGreaterThan(0);
  model.dispose();
});

describe('a signal', () => {
  test.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const)(
    '%s stops the training after the step and leaves a model that loads',
    async (name) => {
      const out = join(root, `stopped by ${name}`);
      const child = spawn(process.execPath, [command, ...trainArgs(out, '--epochs', '100000')]);
      let stderr = '';
      child.stderr.on('data', (chunk: Buffer) => {
        stderr += String(chunk);
        if (!stderr.includes('epoch 2/') || stderr.includes('stopping')) return;
        child.kill(name);
        // A terminal that closes sends it twice.
        if (name === 'SIGHUP') setTimeout(() => child.kill(name), 2);
      });
      const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
        child.on('exit', (...how) => resolve(how)),
      );
      expect({ code, signal }).toEqual({ code: 128 + constants.signals[name], signal: null });
      expect(stderr).toContain('stopping after this step; a second signal ends immediately');
      expect(stderr).not.toContain('Debugger');
      const loaded = await loadModel(join(out, 'last'));
      expect(loaded.config.training?.['step']).toBeGreaterThan(1);
      loaded.model.dispose();
    },
  );

  test('before the first step says that nothing was saved', async () => {
    const out = join(root, 'early');
    // Enough different words that the tokenizer takes a while.
    const many = join(root, 'many.csv');
    const word = (seed: number) => createHash('md5').update(`${seed}`).digest('base64');
    const rows = Array.from({ length: 20_000 }, (_, row) => `${word(row)},${word(-row)}`);
    writeFileSync(many, `digits,words\n${rows.join('\n')}\n`);
    const args = trainArgs(out, '--train', many, '--vocab-size', '8000');
    const child = spawn(process.execPath, [command, ...args]);
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += String(chunk);
      // The data is read, the tokenizer not made yet.
      if (stderr.includes('training a tokenizer') && !child.killed) child.kill('SIGINT');
    });
    const code = await new Promise((resolve) => child.on('exit', resolve));
    expect(code).toBe(130);
    expect(stderr).toContain('stopped before the first step: nothing was saved');
    expect(existsSync(out)).toBe(false);
  });

  test.each([
    ['SIGINT', 'SIGINT'],
    ['SIGUSR1', 'SIGUSR1'],
    ['SIGUSR1', 'SIGTERM'],
    ['SIGHUP', 'SIGTERM'],
  ] as const)(
    '%s, then %s ends the process at once, whatever it is doing',
    async (first, second) => {
      const signals = new URL('../../dist/cli/signals.js', import.meta.url).href;
      const script =
        `const { withInterrupts } = await import(${JSON.stringify(signals)});` +
        `const busy = setInterval(() => {}, 1000);` +
        `setTimeout(() => console.log('ready'));` +
        `await withInterrupts('stopping', () => new Promise(() => busy));`;
      const child = spawn(process.execPath, ['--input-type=module', '-e', script]);
      child.stdout.once('data', () => child.kill(first));
      child.stderr.once('data', () => child.kill(second));
      const signal = await new Promise((resolve) =>
        child.on('exit', (_code, name) => resolve(name)),
      );
      expect(signal).toBe(second);
    },
  );

  test('that asks to quit ends the process at once', async () => {
    const signals = new URL('../../dist/cli/signals.js', import.meta.url).href;
    const script =
      `const { withInterrupts } = await import(${JSON.stringify(signals)});` +
      `setTimeout(() => console.log('ready'));` +
      `await withInterrupts('stopping', () => new Promise((end) => setTimeout(end, 60_000)));`;
    const args = ['--input-type=module', '-e', script];
    const child = spawn(process.execPath, args, { cwd: root });
    child.stdout.once('data', () => child.kill('SIGQUIT'));
    const signal = await new Promise((resolve) => child.on('exit', (_code, name) => resolve(name)));
    expect(signal).toBe('SIGQUIT');
  });
});

test('a validation row that is too long ends no training, and is no sample', () => {
  const validate = join(root, 'long.csv');
  const rows = [`20,${'twenty '.repeat(60)}`, '21,twenty one', '22,twenty two'];
  writeFileSync(validate, `digits,words\n${rows.join('\n')}\n`);
  const flags = [
    '--validate',
    validate,
    '--epochs',
    '2',
    '--samples',
    '2',
    '--lr',
    '50',
    '--warmup',
    '0',
  ];
  const { status, stderr } = torchformer(trainArgs(join(root, 'long'), ...flags));
  expect(status, stderr).toBe(0);
  expect(stderr).toContain('left out: 1 too long (row 1)');
  expect(stderr.match(/^ {2}twenty (one|two) → /gm)).toHaveLength(4);
  expect(stderr).toMatch(/it has exploded\. Try a smaller --lr, a --warmup or --clip/);
});

test('cells end where --delimiter says, and quotes may be none', async () => {
  const bars = join(root, 'bars.csv');
  const rows = fiftyPairs.map(({ src, tgt }) => `"${tgt}^${src}`);
  writeFileSync(bars, `digits^words\n${rows.join('\n')}\n`);
  const out = join(root, 'bars');
  const flags = ['--train', bars, '--validate', bars, '--epochs', '1', '--samples', '0'];
  const { stderr } = torchformer(trainArgs(out, ...flags, '--delimiter', '^'));
  expect(stderr).toContain('a file without quoting is read with --no-quotes');
  const { status } = torchformer(trainArgs(out, ...flags, '--delimiter', '^', '--no-quotes'));
  expect(status).toBe(0);
});

describe('--device', () => {
  test('auto trains and translates on what is there, and train says where', () => {
    const out = join(root, 'auto');
    const trained = torchformer(trainArgs(out, '--epochs', '1', '--device', 'auto'));
    expect(trained.stderr).toContain(`device: ${cuda.isAvailable() ? 'cuda:0' : 'cpu'}\n`);
    expect(trained.status).toBe(0);
    const translated = torchformer(['translate', '--model', out, '--device', 'auto', 'twenty']);
    expect([translated.stderr, translated.status]).toEqual(['', 0]);
    expect(translated.stdout.split('\n').length).toBe(2);
  });

  test.skipIf(cuda.isAvailable())('cuda without a GPU fails before anything is read', () => {
    for (const command of [
      trainArgs(join(root, 'none'), '--train', '/no/such.csv', '--device', 'cuda'),
      ['translate', '--model', '/no/such', '--device', 'cuda', 'twenty'],
    ]) {
      const { status, stderr } = torchformer(command);
      expect(stderr).toContain(
        `${command[0]}: --device is 'cuda', but no CUDA GPU can be used here: `,
      );
      expect(stderr).not.toMatch(/\n {4}at /);
      expect(status).toBe(1);
    }
  });
});

describe('mistakes in the command', () => {
  const cases: [string, string[], string | RegExp][] = [
    ['an unknown flag', ['--speed', '11'], /unknown option '--speed'/],
    [
      'a missing column',
      ['--src', 'english'],
      /no column "english"; the columns found are "digits", "words"/,
    ],
    ['a missing file', ['--train', '/no/such.csv'], /\/no\/such\.csv: there is no such file/],
    [
      'a number that is none',
      ['--epochs', 'ten'],
      /'--epochs <count>' argument 'ten' is invalid\. It must be an integer from 1/,
    ],
    ['a fraction where a count is due', ['--batch-size', '1.5'], /It must be an integer from 1/],
    [
      'two sizes of batches',
      ['--batch-tokens', '4000', '--batch-size', '50'],
      /'--batch-tokens <tokens>' cannot be used with option '--batch-size <pairs>'/,
    ],
    ['a share above one', ['--dropout', '1.5'], /It must be a number from 0 to 1/],
    ['a rate of nothing', ['--lr', '0'], /It must be a number above 0/],
    [
      'heads that do not divide the size',
      ['--heads', '5'],
      /--heads 5 does not divide --d-model 32/,
    ],
    ['an unknown dtype', ['--dtype', 'int8'], /It must be float32, float64, bf16 or fp16/],
    ['an unknown device', ['--device', 'gpu'], /It must be auto, cpu, cuda or cuda:<number>/],
    [
      'a token that the tokenizer lacks',
      ['--pad', '<padding>'],
      /pad "<padding>" is not in the vocabulary/,
    ],
    ['pad and eos the same', ['--pad', '<eos>', '--eos', '<eos>'], /pad and eos are both 2/],
    [
      'a warm-up of 0 for noam',
      ['--schedule', 'noam', '--warmup', '0'],
      /noam needs a --warmup of at least 1/,
    ],
    ['a tilde that the shell left', ['--out', '~/run'], /The shell does not expand ~/],
    ['another tilde', ['--train', '~other/x.csv'], /The shell does not expand ~/],
    ['two characters between cells', ['--delimiter', '::'], /It must be tab, or one character/],
    [
      'another delimiter than the file has',
      ['--delimiter', ':'],
      /no column "words"; the columns found are "digits,words"/,
    ],
    [
      'a vocabulary too small for bytes, before anything is read',
      ['--vocab-size', '258', '--train', '/no/such.csv'],
      /--vocab-size must be at least 259/,
    ],
    [
      'a vocabulary too small for bytes',
      ['--vocab-size', '100'],
      /--vocab-size must be at least 259/,
    ],
  ];
  test.each(cases)(
    '%s is an error with exit code 1 that says so, and nothing is written',
    (_name, flags, message) => {
      const out = join(root, 'refused');
      const { status, stderr } = torchformer(trainArgs(out, ...flags));
      expect(stderr).toMatch(message);
      expect(stderr).not.toMatch(/\n {4}at /);
      expect(status).toBe(1);
      expect(readdirSync(root)).not.toContain('refused');
    },
  );

  test('a folder without a model', () => {
    const empty = join(root, 'empty');
    mkdirSync(empty);
    const { status, stderr } = torchformer(['translate', '--model', empty, 'twenty']);
    expect(stderr).toContain(`${empty}: no model in it`);
    expect(status).toBe(1);
  });

  test('a missing flag is named', () => {
    expect(torchformer(['translate', 'twenty']).stderr).toContain(
      "required option '--model <folder>' not specified",
    );
    expect(torchformer(['train']).stderr).toContain(
      'error: required: --train, --src, --tgt, --out, as a flag or in the --config file',
    );
  });
});

describe('--help', () => {
  test.each(['train', 'translate'])('of %s explains every flag', (name) => {
    const { status, stdout } = torchformer([name, '--help']);
    expect(status).toBe(0);
    const flags = [...stdout.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)(.*)$/gm)];
    expect(flags.length).toBeGreaterThan(4);
    for (const [, flag, rest] of flags)
      expect(rest, `${flag} has no explanation`).toMatch(/\w{2,}.* \w+/);
  });

  test('of train tells the defaults', () => {
    const { stdout } = torchformer(['train', '--help']);
    for (const text of ['default: 6', 'default: 512', 'default: 50', 'noam:', 'default: "cpu"']) {
      expect(stdout).toContain(text);
    }
  });
});

describe('the model that torchformer train makes', () => {
  test('is the one that the flags describe, down to its checkpoint', async () => {
    const out = join(root, 'modern');
    const { status, stderr } = torchformer(
      trainArgs(
        out,
        ...['--epochs', '1', '--samples', '1', '--norm', 'rms', '--order', 'post'],
        ...['--positions', 'rotary', '--activation', 'swiglu', '--tie', 'all', '--no-bias'],
      ),
    );
    expect(status, stderr).toBe(0);
    const { model, tokenizer } = await loadModel(out);
    expect(model.config).toMatchObject({
      vocabSize: tokenizer?.vocabSize,
      norm: { kind: 'rms', eps: 1e-6 },
      order: 'post',
      finalNorm: false,
      positions: 'rotary',
      activation: 'swiglu',
      tie: 'all',
      bias: { attention: false, feedForward: false, generator: false },
    });
    expect(torchformer(['translate', '--model', out, 'twenty']).status).toBe(0);
  });

  test.each([
    [['--norm', 'batch'], /--norm <kind>.*'batch' is invalid.*layer, rms/],
    [['--order', 'both'], /'both' is invalid.*pre, post/],
    [['--positions', 'sine'], /'sine' is invalid.*paired, perColumn, learned, rotary, none/],
    [['--activation', 'tanh'], /'tanh' is invalid.*relu, gelu, swiglu/],
    [['--tie', 'src'], /'src' is invalid.*none, src-tgt, tgt-generator, all/],
    [['--heads', '3'], /--heads 3 does not divide --d-model 32/],
    [['--positions', 'rotary', '--heads', '32'], /needs heads of an even size.* 32 is 1/],
  ])('cannot have %j', (flags, message) => {
    const { status, stderr } = torchformer(trainArgs(join(root, 'never'), ...flags));
    expect(stderr).toMatch(message);
    expect(status).toBe(1);
    expect(readdirSync(root)).not.toContain('never');
  });
});
