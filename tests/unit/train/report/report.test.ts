/** `report.html`; `npm run test:browser` looks at it in a browser. */
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  historyJson,
  JsonLinesLog,
  newReport,
  readLog,
  ReportWriter,
  writeReport,
} from 'torchformer';
import { describe, expect, test } from 'vitest';
// Internal: the data of the page.
import type { ReportData } from '../../../../lib/train/report/reportData.js';
import { temporaryFolder } from '../../../process/support.js';
import { sampleTranslation, sendRun, startEvent, stepEvent } from './trainingEvents.js';

function dataOf(page: string): ReportData {
  const text = readFileSync(page, 'utf8');
  const [, json] = /<script type="application\/json" id="data">(.*?)<\/script>/s.exec(text) ?? [];
  return JSON.parse(json as string) as ReportData;
}

const runOf = (page: string) => dataOf(page).runs[0] as ReportData['runs'][number];

/** The folder of a run of 40 steps with a log. */
async function loggedRun(name = 'a', steps = 40): Promise<string> {
  const folder = join(temporaryFolder(), name);
  const data = [{ ...newReport('train.csv'), rows: 3, kept: 2, empty: 1 }];
  const log = new JsonLinesLog({ path: join(folder, 'log.jsonl'), settings: { lr: 0.5 }, data });
  await sendRun([log], steps);
  return folder;
}

describe('the page of a run', () => {
  test('has the values of its log', async () => {
    const folder = await loggedRun();
    const page = await writeReport([folder]);
    expect(page).toBe(join(folder, 'report.html'));
    const log = await readLog(join(folder, 'log.jsonl'));
    const run = runOf(page);
    expect(run.loss.points.x).toEqual(log.steps.map(({ step }) => step));
    run.loss.points.y.forEach((value, index) => {
      expect(value).toBeCloseTo(log.steps[index]?.loss as number, 5);
    });
    expect(run.learningRate.points.y).toEqual(log.steps.map(({ learningRate }) => learningRate));
    expect(run.gradientNorm?.points.y).toEqual(log.steps.map(({ gradientNorm }) => gradientNorm));
    // 100 tokens in half a second: validations do not count.
    expect(new Set(run.speed?.points.y)).toEqual(new Set([200]));
    expect(run.validations.step).toEqual([10, 20, 30, 40]);
    expect(run.validations.bleu).toEqual([2.5, 5, 7.5, 10]);
    expect(run).toMatchObject({ name: 'a', steps: 40, epochs: 2, seconds: 24, tokens: 4000 });
    expect(run.best).toMatchObject({ step: 40, loss: 2.25 });
    expect(run.end?.reason).toBe('finished');
  });

  test('has settings, data, hardware and samples', async () => {
    const run = runOf(await writeReport([await loggedRun()]));
    expect(JSON.parse(run.settings ?? '')).toEqual({ lr: 0.5 });
    expect(run.data[0]).toMatchObject({ name: 'train.csv', rows: 3, kept: 2, empty: 1 });
    expect(run.hardware?.node).toBe(process.versions.node);
    expect(run.samples.map(({ step }) => step)).toEqual([10, 20, 30, 40]);
    const { source, attention } = run.samples[0]?.samples[0] ?? {};
    expect(source).toBe(sampleTranslation().source);
    expect(attention?.percent).toEqual([
      [90, 10],
      [25, 75],
    ]);
  });

  test('loads nothing, and no text of the run becomes a part of it', async () => {
    const page = readFileSync(await writeReport([await loggedRun('a & <b>')]), 'utf8');
    expect(page).toContain("default-src 'none'");
    expect(page).not.toMatch(/(?:src|href)="(?!data:)/);
    expect(page.match(/<\/script>/g)).toHaveLength(2);
    expect(page).not.toContain('<script>alert');
    expect(page).toContain('<title>a &amp; &lt;b&gt; · training report</title>');
  });

  test('of a killed run shows what its log has', async () => {
    const folder = await loggedRun();
    const log = join(folder, 'log.jsonl');
    const lines = readFileSync(log, 'utf8').split('\n').slice(0, 16);
    writeFileSync(log, `${lines.join('\n')}\n{"event":"st`);
    const run = runOf(await writeReport([folder]));
    expect(run.steps).toBe(14);
    expect(run.end).toBeNull();
  });

  test('of an older version shows its history', async () => {
    const folder = temporaryFolder();
    const { steps, epochs } = await readLog(join(await loggedRun(), 'log.jsonl'));
    const old = steps.map(({ step, epoch, loss, tokens, learningRate }) => ({
      ...{ step, epoch, loss, tokens, learningRate },
    }));
    writeFileSync(
      join(folder, 'history.json'),
      JSON.stringify({ steps: old, validationBatches: [], epochs }),
    );
    const run = runOf(await writeReport([folder]));
    expect(run.loss.points.x).toHaveLength(40);
    expect(run.validations).toMatchObject({ step: [20, 40], loss: [2, 2] });
  });

  test('of a history with numbers that are not finite has gaps', async () => {
    const folder = temporaryFolder();
    const { steps } = await readLog(join(await loggedRun(), 'log.jsonl'));
    const faulty = steps.map((step) => ({ ...step, loss: step.step === 3 ? NaN : step.loss }));
    const history = { steps: faulty, validationBatches: [], validations: [], epochs: [] };
    writeFileSync(join(folder, 'history.json'), historyJson(history));
    expect(runOf(await writeReport([folder])).loss.points.y.slice(1, 4)).toEqual([2, null, 1]);
  });

  test('has the settings file of a run whose log has no settings', async () => {
    const folder = join(temporaryFolder(), 'a');
    await sendRun([new JsonLinesLog({ path: join(folder, 'log.jsonl') })], 1);
    writeFileSync(join(folder, 'config.yaml'), 'lr: 0.5 # high\n');
    expect(runOf(await writeReport([folder])).settings).toBe('lr: 0.5 # high\n');
  });

  test('of a million steps is small', async () => {
    const folder = join(temporaryFolder(), 'a');
    mkdirSync(folder);
    const writer = new ReportWriter({ folder });
    await writer.start(startEvent());
    for (let step = 1; step <= 1_000_000; step++) {
      writer.step(stepEvent(step, { loss: 2 + Math.sin(step) / Math.sqrt(step) }));
    }
    await writer.end({ step: 1_000_000, epoch: 1, seconds: 500_000, reason: 'finished' });
    expect(readFileSync(writer.path).length).toBeLessThan(1e6);
    expect(runOf(writer.path).loss.points.y[0]).toBeCloseTo(2 + Math.sin(1), 5);
  });
});

describe('the page of several runs', () => {
  test('has each under the part of its path that is different', async () => {
    const folder = temporaryFolder();
    const paths = ['a/first', 'b/first'].map((name) => join(folder, name));
    for (const path of paths) {
      await sendRun([new JsonLinesLog({ path: join(path, 'log.jsonl') })], 3);
    }
    const out = join(folder, 'both.html');
    expect(await writeReport(paths, { out })).toBe(out);
    expect(dataOf(out).runs.map(({ name }) => name)).toEqual(['a/first', 'b/first']);
  });
});

describe('a page that cannot be written', () => {
  test('is that of a folder without a run', async () => {
    await expect(writeReport([temporaryFolder()])).rejects.toMatchObject({
      code: 'ERR_DATA',
      message: expect.stringContaining('neither log.jsonl nor history.json') as string,
    });
  });

  test('is that of a damaged log, whose line is named', async () => {
    const folder = await loggedRun();
    appendFileSync(join(folder, 'log.jsonl'), 'oops\n{"event":"message","step":40,"text":""}\n');
    await expect(writeReport([folder])).rejects.toMatchObject({
      code: 'ERR_DATA',
      message: expect.stringMatching(/log\.jsonl:49: this line cannot be read/) as string,
    });
  });

  test('is that of something else under the name of a history', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'history.json'), '{"steps":[{}]}');
    await expect(writeReport([folder])).rejects.toMatchObject({
      code: 'ERR_DATA',
      message: expect.stringContaining('history.json: this is not the history of a run') as string,
    });
  });

  test('is that of no run', async () => {
    await expect(writeReport([])).rejects.toThrow('writeReport: runs must have a folder, got none');
    await expect(writeReport('runs/a' as never)).rejects.toThrow('pass [text]');
  });
});

describe('the listener', () => {
  test('writes the page while the run trains, and at the end', async () => {
    const folder = join(temporaryFolder(), 'a');
    mkdirSync(folder);
    const writer = new ReportWriter({ folder, settings: { lr: 0.5 } });
    await sendRun([writer], 40);
    const run = runOf(writer.path);
    expect(run).toMatchObject({ name: 'a', steps: 40, end: { reason: 'finished' } });
    expect(run.samples).toHaveLength(4);
  });

  test('of a resumed run shows what was before', async () => {
    const folder = await loggedRun('a', 40);
    const writer = new ReportWriter({ folder });
    await writer.start(startEvent(20));
    writer.step(stepEvent(21, { loss: 100 }));
    await writer.end({ step: 21, epoch: 2, seconds: 10.5, reason: 'aborted' });
    const run = runOf(writer.path);
    expect(run.loss.points.x.at(-1)).toBe(21);
    expect(run.loss.points.y.slice(-2)).toEqual([0.2, 100]);
    expect(run.validations.step).toEqual([10, 20]);
    expect(run.resumes).toEqual([20]);
  });

  test('ends no training if the page cannot be written', async () => {
    const warnings: string[] = [];
    const folder = join(temporaryFolder(), 'gone');
    const writer = new ReportWriter({ folder, warn: (message) => warnings.push(message) });
    await sendRun([writer], 1);
    expect(warnings).toEqual([expect.stringContaining('the folder does not exist')]);
    expect(existsSync(folder)).toBe(false);
  });
});
