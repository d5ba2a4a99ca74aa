/** Files for TensorBoard; `npm run test:tensorboard` reads such files with TensorBoard itself. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TensorBoardWriter } from 'torchformer';
import { describe, expect, test } from 'vitest';
// Internal: the encoding of records.
import { crc32c } from '../../../../dist/train/report/tensorBoard/crc32c.js';
import {
  restartRecord,
  summaryRecord,
  versionRecord,
} from '../../../../dist/train/report/tensorBoard/eventRecords.js';
import { root, temporaryFolder } from '../../../process/support.js';
import { startEvent, stepEvent, validationRecord } from './trainingEvents.js';

/** What TensorBoard's own writer makes; made by tests/tensorboard/make_records.py. */
const records = JSON.parse(readFileSync(join(root, 'tests/tensorboard/records.json'), 'utf8')) as {
  readonly wallTime: number;
  readonly [name: string]: string | number;
};

describe('records equal those of TensorBoard’s own writer', () => {
  const time = records.wallTime;
  test.each([
    ['version', versionRecord(time)],
    ['restartAt0', restartRecord(time, 0)],
    ['restartAt301', restartRecord(time, 301)],
    [
      'scalars',
      summaryRecord(time, 300, [
        { tag: 'train/loss', value: 2.5 },
        { tag: 'train/learning_rate', value: 0.1 },
      ]),
    ],
    ['laterThan32Bits', summaryRecord(time, 2 ** 33 + 5, [{ tag: 'train/loss', value: -1e-30 }])],
    [
      'notFinite',
      summaryRecord(time, 1, [
        { tag: 'a', value: Infinity },
        { tag: 'b', value: NaN },
      ]),
    ],
    [
      'text',
      summaryRecord(time, 7, [{ tag: 'samples', text: `ein Haus → a house ${'猫'.repeat(20)}` }]),
    ],
  ])('%s', (name, record) => {
    expect(record.toString('hex')).toBe(records[name]);
  });
});

test('the checksum is that of the standard', () => {
  // RFC 3720, B.4, and the usual check value.
  expect(crc32c(Buffer.alloc(32))).toBe(0x8a9136aa);
  expect(crc32c(Buffer.alloc(32, 0xff))).toBe(0x62a8ab43);
  expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283);
});

/** The data of each record of a file, as text in which tags and texts can be found. */
function recordsOf(path: string): string[] {
  const bytes = readFileSync(path);
  const found: string[] = [];
  for (let at = 0; at < bytes.length;) {
    const length = bytes.readUInt32LE(at);
    found.push(bytes.toString('latin1', at + 12, at + 12 + length));
    at += 16 + length;
  }
  return found;
}

const tagsOf = (record: string | undefined) =>
  [...(record ?? '').matchAll(/(?:train|validation)\/[a-z_]+|samples|settings/g)].map(
    ([tag]) => tag,
  );

async function written(folder: string, events: (writer: TensorBoardWriter) => unknown) {
  const writer = new TensorBoardWriter({ folder });
  await writer.start(startEvent());
  const path = writer.path as string;
  await events(writer);
  await writer.close();
  return recordsOf(path).slice(2);
}

describe('the writer', () => {
  test('writes loss, rate, norm and speed of each step', async () => {
    const found = await written(temporaryFolder(), (writer) => {
      writer.step(stepEvent(1));
      writer.step(stepEvent(2));
    });
    expect(found).toHaveLength(2);
    expect(tagsOf(found[1])).toEqual([
      'train/loss',
      'train/learning_rate',
      'train/gradient_norm',
      'train/tokens_per_second',
    ]);
    // 100 tokens in half a second.
    const speed = Buffer.alloc(4);
    speed.writeFloatLE(200);
    expect(found[1]?.endsWith(speed.toString('latin1'))).toBe(true);
  });

  test('writes every n-th step on request', async () => {
    const writer = new TensorBoardWriter({ folder: temporaryFolder(), every: 10 });
    await writer.start(startEvent());
    const path = writer.path as string;
    for (let step = 1; step <= 25; step++) writer.step(stepEvent(step));
    await writer.close();
    expect(recordsOf(path)).toHaveLength(2 + 2);
  });

  test('writes a validation, with scores and samples if there are some', async () => {
    const sample = { source: 'ein|Haus', translation: 'a <b>', reference: null, attention: null };
    const found = await written(temporaryFolder(), async (writer) => {
      await writer.validation(validationRecord(1));
      await writer.validation(validationRecord(2, { bleu: 1, chrf: 2, samples: [sample] }));
    });
    expect(tagsOf(found[0])).toEqual([
      'validation/loss',
      'validation/perplexity',
      'validation/accuracy',
    ]);
    expect(tagsOf(found[1]).slice(3)).toEqual(['validation/bleu', 'validation/chrf', 'samples']);
    expect(found[1]).toContain('ein&#124;Haus | a &#60;b&#62; | ');
  });

  test('begins a file for each training, later in the order of names than those before', async () => {
    const folder = temporaryFolder();
    // The clock was wrong then.
    writeFileSync(join(folder, 'events.out.tfevents.9000000000.host.1.0'), '');
    await written(folder, () => undefined);
    await written(folder, () => undefined);
    expect(
      readdirSync(folder)
        .sort()
        .map((name) => name.split('.')[3]),
    ).toEqual(['9000000000', '9000000001', '9000000002']);
  });

  test('checks its options', () => {
    expect(() => new TensorBoardWriter({ folder: 'a', every: 0 })).toThrow(
      'TensorBoardWriter: every must be an integer at least 1, got 0',
    );
    expect(() => new TensorBoardWriter({ folder: 3 } as never)).toThrow(
      'TensorBoardWriter: folder must be a path, got 3',
    );
  });
});
