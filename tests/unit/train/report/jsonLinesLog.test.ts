/** `log.jsonl`: one line of JSON for each event. */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { JsonLinesLog, newReport, readLog } from 'torchformer';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../../process/support.js';
import {
  epochRecord,
  startEvent,
  stepEvent,
  stepRecord,
  validationRecord,
} from './trainingEvents.js';

const finished = { step: 4, epoch: 1, seconds: 2, reason: 'finished' } as const;

function newLog(options: Partial<ConstructorParameters<typeof JsonLinesLog>[0]> = {}) {
  return new JsonLinesLog({ path: join(temporaryFolder(), 'log.jsonl'), ...options });
}

const linesOf = (log: JsonLinesLog) => readFileSync(log.path, 'utf8').split('\n').slice(0, -1);

/** A log of steps 1 to 4 whose run has then been killed. */
async function killedLog(): Promise<JsonLinesLog> {
  const log = newLog();
  await log.start(startEvent());
  for (const step of [1, 2, 3, 4]) log.step(stepEvent(step));
  await log.close();
  return log;
}

describe('the log', () => {
  test('has a line for each event, in their order', async () => {
    const log = newLog();
    await log.start(startEvent());
    log.step(stepEvent(1));
    log.message('the loss does not fall');
    await log.validation(validationRecord(1));
    await log.epoch(epochRecord(1, 1));
    await log.checkpoint({
      step: 1,
      epoch: 1,
      kind: 'best',
      folder: 'runs/a/best',
      bytes: 100,
      seconds: 0.5,
    });
    await log.end(finished);
    const events = linesOf(log).map((line) => (JSON.parse(line) as { event: string }).event);
    expect(events).toEqual([
      'start',
      'step',
      'message',
      'validation',
      'epoch',
      'checkpoint',
      'end',
    ]);
    expect(linesOf(log)[1]).toBe(
      '{"event":"step","step":1,"epoch":1,"loss":4,"tokens":100,"learningRate":0.5,"gradientNorm":2,"seconds":0.5}',
    );
  });

  test('begins with the settings, the data and what the run computes with', async () => {
    const log = newLog({
      settings: { lr: 0.5 },
      data: [{ ...newReport('a.csv'), rows: 2, kept: 2 }],
    });
    await log.start(startEvent());
    await log.close();
    const { starts } = await readLog(log.path);
    expect(starts).toHaveLength(1);
    const [{ settings, data, hardware, parameters, steps }] = starts as [(typeof starts)[number]];
    expect({ settings, parameters, steps }).toEqual({
      settings: { lr: 0.5 },
      parameters: 1000,
      steps: Infinity,
    });
    expect(data[0]).toMatchObject({ name: 'a.csv', rows: 2, kept: 2, malformed: 0 });
    expect(data[0]?.description).toBe('a.csv: 2 pairs kept of 2 rows');
    expect(hardware).toMatchObject({ node: process.versions.node });
    expect(hardware.libtorch).toMatch(/^2\.\d+\.\d+ \(/);
    expect(hardware.memory).toBeGreaterThan(1e8);
  });

  test('is read as it was written, numbers to the last bit', async () => {
    const log = newLog();
    const steps = [1 / 3, 1e-300, 123456789.123].map((loss, index) =>
      stepEvent(index + 1, { loss }),
    );
    const validation = validationRecord(3, {
      bleu: 12.5,
      samples: [
        {
          source: 'ein\n"Haus" 😀\u2028',
          translation: 'a house',
          reference: null,
          attention: { sourceTokens: ['a'], targetTokens: ['b', 'c'], weights: [[1], [1]] },
        },
      ],
    });
    await log.start(startEvent());
    for (const step of steps) log.step(step);
    await log.validation(validation);
    await log.epoch(epochRecord(1, 3));
    await log.end({ ...finished, reason: 'error', error: new Error('no more space') });
    const read = await readLog(log.path);
    expect(read.steps).toEqual(steps.map(stepRecord));
    expect(read.validations).toEqual([validation]);
    expect(read.epochs).toEqual([epochRecord(1, 3)]);
    expect(read.end).toEqual({ ...finished, reason: 'error', error: 'no more space' });
  });

  test('has numbers that are not finite as text', async () => {
    const log = newLog();
    await log.start(startEvent());
    log.step(stepEvent(1, { loss: NaN, gradientNorm: Infinity }));
    await log.validation(validationRecord(1, { loss: -Infinity }));
    await log.close();
    expect(linesOf(log)[1]).toContain('"loss":"NaN"');
    const { steps, validations } = await readLog(log.path);
    expect(steps[0]).toMatchObject({ loss: NaN, gradientNorm: Infinity });
    expect(validations[0]?.loss).toBe(-Infinity);
  });

  test('is on the disk after a validation, an epoch, a checkpoint and flush', async () => {
    const log = newLog();
    await log.start(startEvent());
    const lines: number[] = [];
    const count = () => lines.push(linesOf(log).length);
    count();
    log.step(stepEvent(1));
    count();
    await log.validation(validationRecord(1));
    count();
    log.step(stepEvent(2));
    await log.flush();
    count();
    await log.close();
    expect(lines).toEqual([1, 1, 3, 4]);
  });

  test('keeps messages from before the start', async () => {
    const log = newLog();
    log.message('1000 pairs');
    await log.start(startEvent());
    await log.close();
    expect((await readLog(log.path)).messages).toEqual([{ step: 0, text: '1000 pairs' }]);
  });

  test('replaces that of an earlier run', async () => {
    const log = await killedLog();
    await log.start(startEvent());
    await log.close();
    expect(linesOf(log)).toHaveLength(1);
  });
});

describe('the log of a run that is resumed', () => {
  test('loses the steps after the checkpoint, which are taken again', async () => {
    const log = await killedLog();
    await log.start(startEvent(2));
    log.step(stepEvent(3, { loss: 100 }));
    await log.close();
    const { steps, starts } = await readLog(log.path);
    expect(steps.map(({ loss }) => loss)).toEqual([4, 2, 100]);
    expect(starts.map(({ step }) => step)).toEqual([0, 2]);
  });

  test('loses a line that was torn', async () => {
    const log = await killedLog();
    appendFileSync(log.path, '{"event":"step","step":5,"lo');
    expect((await readLog(log.path)).steps).toHaveLength(4);
    await log.start(startEvent(4));
    await log.close();
    expect(linesOf(log).map((line) => (JSON.parse(line) as { event: string }).event)).toEqual([
      'start',
      'step',
      'step',
      'step',
      'step',
      'start',
    ]);
  });

  test('is cut at the right byte in a file of many pieces', async () => {
    const log = newLog();
    await log.start(startEvent());
    for (let step = 1; step <= 60_000; step++) log.step(stepEvent(step));
    log.message('ä€😀');
    await log.close();
    const size = readFileSync(log.path).length;
    expect(size).toBeGreaterThan(6e6);
    await log.open({ step: 50_001 });
    await log.close();
    const { steps } = await readLog(log.path);
    expect(steps).toHaveLength(50_001);
    expect(steps.at(-1)).toEqual(stepRecord(stepEvent(50_001)));
  });

  test('is read without the repeated part even if nobody has cut the file', async () => {
    const log = await killedLog();
    const before = readFileSync(log.path, 'utf8');
    await log.start(startEvent(2));
    await log.validation(validationRecord(2));
    await log.close();
    const after = readFileSync(log.path, 'utf8').split('\n').slice(3).join('\n');
    writeFileSync(log.path, before + after);
    expect((await readLog(log.path)).steps.map(({ step }) => step)).toEqual([1, 2]);
  });

  test('has a validation once that was made before and after', async () => {
    const log = await killedLog();
    await log.open({ step: 4 });
    await log.validation(validationRecord(4, { loss: 3 }));
    await log.validation(validationRecord(4, { loss: 2 }));
    await log.close();
    expect((await readLog(log.path)).validations).toEqual([validationRecord(4, { loss: 2 })]);
  });
});

describe('a log that cannot be read', () => {
  test.each([
    ['is no JSON', '{"event":', /log\.jsonl:3: this line cannot be read: .*; if it is damaged/],
    ['is no event', '[1]', /log\.jsonl:3: .* not an object with an "event"/],
    ['lacks a number', '{"event":"step","step":1}', /log\.jsonl:3: .*"epoch" of the step/],
  ])('names the line that %s', async (_what, line, message) => {
    const log = await killedLog();
    const lines = linesOf(log);
    lines.splice(2, 0, line);
    writeFileSync(log.path, `${lines.join('\n')}\n`);
    await expect(readLog(log.path)).rejects.toMatchObject({
      code: 'ERR_DATA',
      message: expect.stringMatching(message) as string,
    });
    // Nor is it continued.
    await expect(log.open({ step: 4 })).rejects.toMatchObject({ code: 'ERR_DATA' });
  });

  test('does not keep the run from being resumed, and is kept', async () => {
    const warnings: string[] = [];
    const log = newLog({ warn: (message) => warnings.push(message) });
    writeFileSync(log.path, 'oops\n');
    await log.start(startEvent(4));
    log.step(stepEvent(5));
    await log.close();
    expect(warnings).toEqual([
      expect.stringMatching(
        /log\.jsonl:1: .* It is now .*log\.jsonl\.damaged, and a new log begins$/,
      ),
    ]);
    expect(readFileSync(`${log.path}.damaged`, 'utf8')).toBe('oops\n');
    expect((await readLog(log.path)).steps).toEqual([stepRecord(stepEvent(5))]);
  });

  test('is one that is not there', async () => {
    await expect(readLog('nowhere/log.jsonl')).rejects.toMatchObject({
      code: 'ERR_DATA',
      message: expect.stringContaining('cannot read nowhere/log.jsonl') as string,
    });
  });

  test('is not one with events of a later version', async () => {
    const log = await killedLog();
    appendFileSync(log.path, '{"event":"dream","step":4}\n\n');
    expect((await readLog(log.path)).steps).toHaveLength(4);
  });
});

describe('options', () => {
  test('are checked', () => {
    expect(() => new JsonLinesLog({ path: '' })).toThrow('JsonLinesLog: path must be a path');
    expect(() => newLog({ lr: 1 } as object)).toThrow(
      'unknown option "lr"; valid options: data, path, settings, warn',
    );
    expect(() => newLog({ data: [{}] as never })).toThrow('JsonLinesLog: report.name');
  });

  test('a path that cannot be written is an error at the start', async () => {
    const log = newLog({ path: '/proc/nothing/log.jsonl' });
    await expect(log.start(startEvent())).rejects.toMatchObject({ code: 'ERR_CHECKPOINT' });
  });
});
