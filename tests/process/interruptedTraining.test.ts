import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fiftyPairs } from '../support/tinyTranslation.js';
import { root, runCommand, temporaryFolder } from './support.js';

const child = fileURLToPath(new URL('./children/trainRun.mjs', import.meta.url));
const signalled = fileURLToPath(new URL('./children/commandThatSignals.mjs', import.meta.url));
const command = join(root, 'bin/torchformer.js');

/** Starts a process and waits for its end; `onOutput` sees all that it has written so far. */
async function runProcess(
  args: readonly string[],
  onOutput: (output: string, kill: (signal: NodeJS.Signals) => void) => void = () => undefined,
) {
  const started = spawn(process.execPath, args);
  let output = '';
  const add = (chunk: Buffer) => {
    output += String(chunk);
    onOutput(output, (signal) => {
      if (!started.killed) started.kill(signal);
    });
  };
  started.stdout.on('data', add);
  started.stderr.on('data', add);
  const [code, signal] = (await once(started, 'close')) as [number | null, string | null];
  return { code, signal, output };
}

describe('two processes with the same command, which resumes', () => {
  test('the second is refused while the first trains', async () => {
    const out = temporaryFolder();
    let second: ReturnType<typeof runProcess> | undefined;
    const first = await runProcess([child, out], (output) => {
      if (output.includes('\n20\n')) second ??= runProcess([child, out]);
    });
    expect(first.code).toBe(0);
    const { code, output } = await (second as ReturnType<typeof runProcess>);
    // Started a second later on a slow machine, it finds a run that has ended.
    if (code !== 0)
      expect(output).toMatch(/process \d+ is training in this folder; choose another/);
    expect(existsSync(join(out, '.training.lock'))).toBe(false);
  });

  test('one of them takes over a run that was killed, and ends it', async () => {
    const out = temporaryFolder();
    const killed = await runProcess([child, out], (output, kill) => {
      if (output.includes('\n20\n')) kill('SIGKILL');
    });
    expect(killed.signal).toBe('SIGKILL');
    expect(existsSync(join(out, '.training.lock'))).toBe(true);
    const both = await Promise.all([runProcess([child, out]), runProcess([child, out])]);
    const [winner, loser] = both.sort((a, b) => b.output.length - a.output.length);
    expect(both.map(({ code }) => code)).toContain(0);
    expect(winner?.output.length).not.toBe(loser?.output.length);
    const { steps } = JSON.parse(readFileSync(join(out, 'history.json'), 'utf8')) as {
      steps: { step: number }[];
    };
    expect(steps.map(({ step }) => step)).toEqual(Array.from({ length: 90 }, (_, i) => i + 1));
  });

  test.each([
    ['has not been written', ''],
    ['is being taken over by a process that was killed', `${2 ** 31 - 1} ${hostname()}`],
  ])('a lock that %s is waited for, not reported', async (_, content) => {
    const out = temporaryFolder();
    const lock = join(out, '.training.lock');
    writeFileSync(lock, content);
    if (content !== '') writeFileSync(`${lock}.takeover`, content);
    // It counts as abandoned after ten seconds; seven have passed.
    const earlier = new Date(Date.now() - 7000);
    utimesSync(content === '' ? lock : `${lock}.takeover`, earlier, earlier);
    const { code, output } = await runProcess([child, out]);
    expect(output).toContain('\n90\n');
    expect(code).toBe(0);
  });
});

describe('torchformer train', () => {
  let folder: string;
  let pairs: string;
  const args = (out: string, ...more: string[]) => [
    ...['train', '--train', pairs, '--validate', pairs, '--src', 'src', '--tgt', 'tgt'],
    ...['--out', join(folder, out), '--layers', '1', '--d-model', '32', '--d-ff', '64', '--heads'],
    ...['4', '--vocab-size', '300', '--max-length', '32', '--threads', '1', '--epochs', '12'],
    ...['--batch-size', '10', '--save-every', '3', '--keep-last', '2', ...more],
  ];
  const csv = (rows: readonly { src: string; tgt: string }[]) =>
    `src,tgt\n${rows.map(({ src, tgt }) => `${src},${tgt}`).join('\n')}\n`;
  const modelsOf = (out: string) =>
    [
      'best',
      'last',
      ...readdirSync(join(folder, out, 'checkpoints')).map((x) => `checkpoints/${x}`),
    ]
      .sort()
      .map((name) => [
        name,
        readFileSync(join(folder, out, name, 'model.safetensors')).toString('base64'),
      ]);
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'torchformer-interrupted-'));
    pairs = join(folder, 'pairs.csv');
    writeFileSync(pairs, csv(fiftyPairs));
    expect(runCommand(args('whole')).status).toBe(0);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('SIGINT during a step, then --resume, gives the models of the uninterrupted run', async () => {
    const { output } = await runProcess([command, ...args('in a step')], (soFar, kill) => {
      if (soFar.includes('epoch 3/12')) kill('SIGINT');
    });
    expect(output).toContain('stopping after this step');
    expect(runCommand(args('in a step', '--resume')).status).toBe(0);
    expect(modelsOf('in a step')).toEqual(modelsOf('whole'));
  });

  test('SIGTERM during a save, then --resume, gives them, too', async () => {
    const { output } = await runProcess([signalled, 'SIGTERM', '60', ...args('in a save')]);
    expect(output).toContain('stopping after this step');
    const files = readdirSync(join(folder, 'in a save'));
    expect(files.filter((file) => file.startsWith('.'))).toEqual([]);
    expect(runCommand(args('in a save', '--resume')).status).toBe(0);
    expect(modelsOf('in a save')).toEqual(modelsOf('whole'));
  });

  test('killed before its first save, then --resume, makes the same tokenizer and models', async () => {
    const { signal } = await runProcess([signalled, 'SIGKILL', '12', ...args('killed')]);
    expect(signal).toBe('SIGKILL');
    expect(existsSync(join(folder, 'killed/last'))).toBe(false);
    expect(runCommand(args('killed', '--resume')).status).toBe(0);
    expect(modelsOf('killed')).toEqual(modelsOf('whole'));
  });

  test('does not resume with an edited corpus, and names its fingerprint', async () => {
    const edited = join(folder, 'edited.csv');
    writeFileSync(edited, csv(fiftyPairs));
    const more = ['--train', edited];
    await runProcess([command, ...args('edited', ...more)], (soFar, kill) => {
      if (soFar.includes('epoch 2/12')) kill('SIGINT');
    });
    const before = modelsOf('edited');
    const [first, ...others] = fiftyPairs;
    writeFileSync(edited, csv([{ src: first?.src ?? '', tgt: '2' }, ...others]));
    const { status, errors } = runCommand(args('edited', ...more, '--resume'));
    expect(status).toBe(1);
    expect(errors).toMatch(
      /cannot be resumed with other settings: trainingPairs was "50 pairs, \w{12}", is "50 pairs, \w{12}"/,
    );
    expect(modelsOf('edited')).toEqual(before);
    writeFileSync(edited, csv(fiftyPairs));
    expect(runCommand(args('edited', ...more, '--resume')).status).toBe(0);
    expect(modelsOf('edited')).toEqual(modelsOf('whole'));
  });
});
