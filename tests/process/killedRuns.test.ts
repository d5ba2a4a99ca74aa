import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { loadModel, readLog, type History } from 'torchformer';
import { temporaryFolder } from './support.js';

/** `npm run test:kills` sets them: 50 kills. */
const kills = Number(process.env['TORCHFORMER_KILLS'] ?? 4);
const seed = Number(process.env['TORCHFORMER_KILLS_SEED'] ?? 1);
const steps = 90;

const child = fileURLToPath(new URL('./children/trainRun.mjs', import.meta.url));

/** Numbers from 0 to 1, the same for a seed. */
function randomNumbers(start: number): () => number {
  let state = start;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    // The high bits are the random ones.
    return state / 2 ** 32;
  };
}

/** When a process is killed; null: never. */
type Moment =
  | { readonly kind: 'step'; readonly after: number; readonly milliseconds: number }
  | { readonly kind: 'operation'; readonly count: number };

/** Between two steps, within one, or within a save: before or during one of its operations on files. */
function randomMoment(random: () => number): Moment {
  return random() < 0.5
    ? { kind: 'step', after: Math.floor(random() * 20), milliseconds: Math.floor(random() * 12) }
    : { kind: 'operation', count: 1 + Math.floor(random() * 260) };
}

/** Starts the run, or continues it, until it ends or is killed. @returns whether it was killed */
async function train(out: string, moment: Moment | null): Promise<boolean> {
  const operation = moment?.kind === 'operation' ? [String(moment.count)] : [];
  const trainer = spawn(process.execPath, [child, out, ...operation], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const closed = once(trainer, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  let errors = '';
  trainer.stderr.on('data', (chunk: Buffer) => (errors += String(chunk)));
  let taken = 0;
  trainer.stdout.on('data', (chunk: Buffer) => {
    taken += String(chunk).split('\n').length - 1;
    if (moment?.kind === 'step' && taken > moment.after) {
      setTimeout(() => trainer.kill('SIGKILL'), moment.milliseconds);
    }
  });
  const [code, signal] = await closed;
  expect(errors).toBe('');
  if (signal === 'SIGKILL' && moment !== null) return true;
  expect([code, signal]).toEqual([0, null]);
  return false;
}

/** Loads all models of a run; a name that is there must be a whole model. */
async function expectWholeModels(out: string): Promise<void> {
  const kept = join(out, 'checkpoints');
  const names = existsSync(kept) ? readdirSync(kept).filter((name) => !name.startsWith('.')) : [];
  const folders = [join(out, 'best'), join(out, 'last'), ...names.map((name) => join(kept, name))];
  for (const folder of folders) {
    if (!existsSync(folder)) continue;
    const { model } = await loadModel(folder);
    model.dispose();
  }
}

/** Every file of the models by its path, except the seconds in the state of the run. */
function filesOf(out: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const part of ['best', 'last', 'checkpoints']) {
    for (const entry of readdirSync(join(out, part), { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      const bytes = readFileSync(path);
      found[path.slice(out.length + 1)] =
        entry.name === 'training.json'
          ? bytes.toString('utf8').replace(/"seconds": [^,\n]*/g, '"seconds": 0')
          : bytes.toString('base64');
    }
  }
  return found;
}

/** The records without the times that they took. */
function recordsOf({ steps, validations, epochs }: History): unknown {
  const timeless = (records: readonly object[]) =>
    records.map((record) => ({ ...record, seconds: 0, trainSeconds: 0, validationSeconds: 0 }));
  return [steps, validations, epochs].map(timeless);
}

const historyOf = (out: string) =>
  JSON.parse(readFileSync(join(out, 'history.json'), 'utf8')) as History;

async function expectSameRun(out: string, whole: string): Promise<void> {
  const [files, expected] = [filesOf(out), filesOf(whole)];
  expect(Object.keys(files)).toEqual(Object.keys(expected));
  for (const [path, content] of Object.entries(files)) {
    expect(content === expected[path], `${path} is the same`).toBe(true);
  }
  const everyStep = Array.from({ length: steps }, (_, index) => index + 1);
  const history = historyOf(out);
  expect(history.steps.map(({ step }) => step)).toEqual(everyStep);
  expect(recordsOf(history)).toEqual(recordsOf(historyOf(whole)));
  expect(recordsOf(await readLog(join(out, 'log.jsonl')))).toEqual(recordsOf(historyOf(whole)));
  const hidden = readdirSync(out, { recursive: true, encoding: 'utf8' }).filter((path) =>
    /(^|\/)\.|\.(tmp|old)$/.test(path),
  );
  expect(hidden).toEqual([]);
}

describe(`a run that is killed ${kills} times`, () => {
  const random = randomNumbers(seed);
  let killed = 0;
  const places = { step: 0, operation: 0 };
  afterAll(() => {
    if (process.env['TORCHFORMER_KILLS'] !== undefined) {
      console.log(`killed ${killed} times: ${places.step} between, ${places.operation} in saves`);
    }
  });

  test(
    'and resumed each time is equal to the uninterrupted one, to the bit, with whole models at all times',
    async () => {
      const whole = temporaryFolder();
      await train(whole, null);
      while (killed < kills) {
        const out = temporaryFolder();
        let isOver = false;
        while (!isOver) {
          const moment = killed < kills ? randomMoment(random) : null;
          const wasKilled = await train(out, moment);
          await expectWholeModels(out);
          if (wasKilled && moment !== null) {
            killed++;
            places[moment.kind]++;
          }
          isOver = !wasKilled;
        }
        await expectSameRun(out, whole);
      }
      expect(killed).toBe(kills);
    },
    60_000 + 6000 * kills,
  );
});
