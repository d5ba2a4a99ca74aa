/** `report.html` in Chromium, opened as a file. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium, type Browser, type Page } from 'playwright-core';
import { JsonLinesLog, readLog, writeReport, type RunLog } from 'torchformer';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { sendRun } from '../unit/train/report/trainingEvents.js';

let browser: Browser;
let folder: string;
/** A page with one run, and one with two. */
let one: string;
let two: string;
let log: RunLog;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'torchformer-report-'));
  const runs = ['first', 'second </script><img src=x onerror=alert(1)>'.replaceAll('/', '⁄')];
  const paths = runs.map((name) => join(folder, name));
  for (const [index, path] of paths.entries()) {
    mkdirSync(path);
    const writer = new JsonLinesLog({ path: join(path, 'log.jsonl'), settings: { lr: 0.5 } });
    await sendRun([writer], 200 - 50 * index, index === 0 ? {} : { loss: 3 });
  }
  one = await writeReport(paths.slice(0, 1));
  two = await writeReport(paths, { out: join(folder, 'two.html') });
  log = await readLog(join(folder, 'first', 'log.jsonl'));
  const executablePath = process.env['TORCHFORMER_CHROMIUM'] as string;
  // A container's root has no sandbox; the page is our own.
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
});

afterAll(async () => {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Looks {
  readonly width?: number;
  readonly colorScheme?: 'light' | 'dark';
}

/** Opens a page; fails the test if it complains or asks for anything but itself. */
async function openPage(file: string, { width = 1200, colorScheme = 'light' }: Looks = {}) {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
  const complaints: string[] = [];
  page.on('console', (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('dialog', (dialog) => complaints.push(`dialog: ${dialog.message()}`));
  page.on('request', (request) => {
    const url = request.url();
    if (url !== pathToFileURL(file).href && !url.startsWith('data:')) complaints.push(url);
  });
  await page.goto(pathToFileURL(file).href);
  onTestFinished(async () => {
    await page.close();
    expect(complaints).toEqual([]);
  });
  return page;
}

const chart = (page: Page, title: string) =>
  page.locator('.chart').filter({ has: page.locator('h3', { hasText: title }) });

/** The values below a chart: for each line its text and its place. */
async function valuesOf(page: Page, title: string) {
  const heads = await chart(page, title).locator('.values thead th').allTextContents();
  const values = await chart(page, title)
    .locator('.values .value')
    .evaluateAll((cells) =>
      cells.map((cell) => ({
        text: cell.firstChild?.textContent ?? '',
        x: Number((cell as HTMLElement).dataset['x']),
      })),
    );
  return Object.fromEntries(heads.map((head, index) => [head, values[index]]));
}

async function hover(page: Page, title: string, share: number): Promise<void> {
  const plot = chart(page, title).locator('.u-over');
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  if (box === null) throw new Error('the chart is not shown');
  await page.mouse.move(box.x + share * box.width, box.y + box.height / 2);
}

describe.each([
  ['wide and light', { width: 1400, colorScheme: 'light' }],
  ['wide and dark', { width: 1400, colorScheme: 'dark' }],
  ['narrow and light', { width: 360, colorScheme: 'light' }],
  ['narrow and dark', { width: 360, colorScheme: 'dark' }],
] as const)('%s', (_name, looks) => {
  test.each(['one run', 'two runs'])(
    '%s without an error, in the width of the window',
    async (what) => {
      const page = await openPage(what === 'one run' ? one : two, looks);
      expect(await page.locator('.chart h3').allTextContents()).toEqual([
        'Loss',
        'Translation scores',
        'Validation accuracy',
        'Learning rate',
        'Gradient norm',
        'Target tokens per second',
      ]);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      expect(width).toBeLessThanOrEqual(looks.width);
      const drawn = await page.locator('.chart canvas').evaluateAll((canvases) =>
        canvases.map((canvas) => {
          const { width: columns, height: rows } = canvas as HTMLCanvasElement;
          const context = (canvas as HTMLCanvasElement).getContext('2d');
          return context?.getImageData(0, 0, columns, rows).data.some((value) => value > 0);
        }),
      );
      expect(drawn).toEqual(Array.from({ length: 6 }, () => true));
    },
  );
});

describe('the charts', () => {
  test('show the last values of the log', async () => {
    const page = await openPage(one);
    const { training, validation } = await valuesOf(page, 'Loss');
    expect(training).toEqual({ x: 200, text: log.steps.at(-1)?.loss.toFixed(4) });
    expect(validation).toEqual({ x: 200, text: log.validations.at(-1)?.loss.toFixed(4) });
  });

  test.each([0.1, 0.37, 0.8])('show the values of the log at %d of the width', async (share) => {
    const page = await openPage(one);
    await hover(page, 'Loss', share);
    const { training, validation } = await valuesOf(page, 'Loss');
    expect(Math.abs((training?.x ?? 0) - 200 * share)).toBeLessThan(2);
    const step = log.steps.find((record) => record.step === training?.x);
    expect(training?.text).toBe(step?.loss.toFixed(4));
    // The nearest validation: there is one each 10 steps.
    expect(Math.abs((validation?.x ?? 0) - 200 * share)).toBeLessThanOrEqual(6);
    const record = log.validations.find((one) => one.step === validation?.x);
    expect(validation?.text).toBe(record?.loss.toFixed(4));
    // The other charts follow.
    const { BLEU } = await valuesOf(page, 'Translation scores');
    expect(BLEU).toEqual({ x: record?.step, text: record?.bleu?.toFixed(2) });
  });

  test('zoom together by dragging, and back by a double click', async () => {
    const page = await openPage(one);
    const box = await chart(page, 'Loss').locator('.u-over').boundingBox();
    if (box === null) throw new Error('the chart is not shown');
    const middle = box.y + box.height / 2;
    await page.mouse.move(box.x + 0.5 * box.width, middle);
    await page.mouse.down();
    await page.mouse.move(box.x + 0.75 * box.width, middle, { steps: 5 });
    await page.mouse.up();
    await hover(page, 'Learning rate', 0.01);
    expect((await valuesOf(page, 'Gradient norm'))['norm']?.x).toBeCloseTo(100, -1);
    expect(await page.getByRole('button', { name: 'Show everything' }).isEnabled()).toBe(true);
    await chart(page, 'Loss').locator('.u-over').dblclick();
    await hover(page, 'Learning rate', 0.01);
    expect((await valuesOf(page, 'Gradient norm'))['norm']?.x).toBeLessThan(6);
    expect(await page.getByRole('button', { name: 'Show everything' }).isEnabled()).toBe(false);
  });

  test('can be used with the keyboard', async () => {
    const page = await openPage(one);
    await chart(page, 'Loss').locator('.plot').focus();
    await page.keyboard.press('ArrowRight');
    expect((await valuesOf(page, 'Loss'))['training']?.x).toBe(1);
    for (let press = 0; press < 3; press++) await page.keyboard.press('Shift+ArrowRight');
    const at = (await valuesOf(page, 'Loss'))['training']?.x ?? 0;
    expect(at).toBeGreaterThan(20);
    await page.keyboard.press('+');
    expect(await page.getByRole('button', { name: 'Show everything' }).isEnabled()).toBe(true);
    await page.keyboard.press('0');
    expect(await page.getByRole('button', { name: 'Show everything' }).isEnabled()).toBe(false);
  });

  test('are drawn across time, smoothed otherwise, and on a logarithmic scale', async () => {
    const page = await openPage(one);
    const before = (await valuesOf(page, 'Loss'))['training, smoothed']?.text;
    await page.getByLabel('Across').selectOption('time');
    // Two steps a second, and 19 validations of a second.
    expect((await valuesOf(page, 'Loss'))['training']?.x).toBe(119);
    await page.getByLabel('Smoothing').fill('0');
    const { training, 'training, smoothed': smooth } = await valuesOf(page, 'Loss');
    expect(smooth?.text).toBe(training?.text);
    expect(smooth?.text).not.toBe(before);
    await page.getByLabel('Logarithmic').check();
    expect((await valuesOf(page, 'Loss'))['training']?.text).toBe(training?.text);
  });

  test('of a run can be hidden', async () => {
    const page = await openPage(two);
    const rows = () => chart(page, 'Loss').locator('.values tbody tr').count();
    expect(await rows()).toBe(2);
    await page.getByRole('checkbox', { name: 'first' }).uncheck();
    expect(await rows()).toBe(1);
    expect(await chart(page, 'Loss').locator('.values tbody').textContent()).toContain('3.0000');
  });
});

describe('the samples', () => {
  test('are those of the validation that the slider chooses, as plain text', async () => {
    const page = await openPage(one);
    const slider = page.getByRole('slider', { name: 'Validation' });
    expect(await slider.getAttribute('aria-valuetext')).toBe('step 200, epoch 10');
    await slider.focus();
    await page.keyboard.press('Home');
    expect(await slider.getAttribute('aria-valuetext')).toBe('step 10, epoch 1');
    const texts = await page.locator('.sample dd').allTextContents();
    expect(texts[0]).toBe('ein </script><script>alert(1)</script> Haus');
    // The bell of the sample is shown as its picture.
    expect(texts[1]).toContain('a <b>house</b>\u2407');
  });

  test('mark what a token attends to, with the mouse and with the keyboard', async () => {
    const page = await openPage(one);
    const weights = () =>
      page
        .locator('.words .source')
        .evaluateAll((items) =>
          items.map((item) => Number((item as HTMLElement).style.getPropertyValue('--weight'))),
        );
    await page.getByRole('button', { name: 'house, from Haus 75 %, ein 25 %' }).hover();
    expect(await weights()).toEqual([0.25, 0.75]);
    await page.getByRole('button', { name: 'a, from ein 90 %, Haus 10 %' }).focus();
    expect(await weights()).toEqual([0.9, 0.1]);
    await page.keyboard.press('ArrowRight');
    expect(await weights()).toEqual([0.25, 0.75]);
  });
});

test('the table of runs, the settings and the hardware are told', async () => {
  const page = await openPage(two);
  const cells = await page.locator('#runs tbody tr').first().locator('td').allTextContents();
  expect(cells.slice(0, 5)).toEqual(['200', '10', '2:00', '167', '3.0000']);
  expect(cells).toContain('finished');
  await page.getByText('Settings').first().click();
  expect(await page.locator('pre').first().textContent()).toBe('{\n  "lr": 0.5\n}');
  expect(await page.locator('.facts').first().textContent()).toContain(
    `Node.js ${process.versions.node}`,
  );
});
