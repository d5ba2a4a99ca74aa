/** A file that is appended to between training steps. */
import { open, type FileHandle } from 'node:fs/promises';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
// Internal: what log.jsonl and TensorBoard's files are written with.
import { GrowingFile } from '../../../../dist/train/report/growingFile.js';
import { temporaryFolder } from '../../../process/support.js';

function newFile(warn: (message: string) => void = () => undefined) {
  return GrowingFile.open(join(temporaryFolder(), 'file'), 'w', 0, warn);
}

const textOf = (file: GrowingFile) => readFileSync(file.path, 'utf8');

test('texts and bytes are collected, and written in order', async () => {
  const file = await newFile();
  file.append('ä');
  file.append(Uint8Array.of(98, 99));
  expect(textOf(file)).toBe('');
  await file.flush();
  expect(textOf(file)).toBe('äbc');
  file.append('d');
  await file.close();
  expect(textOf(file)).toBe('äbcd');
});

test('an old file is continued after the bytes to keep', async () => {
  const path = join(temporaryFolder(), 'file');
  writeFileSync(path, 'abcdef');
  const file = await GrowingFile.open(path, 'r+', 3, () => undefined);
  file.append('X');
  await file.close();
  expect(textOf(file)).toBe('abcX');
});

test('much is written before anybody asks', async () => {
  const file = await newFile();
  file.append('x'.repeat(300_000));
  await vi.waitFor(() => expect(textOf(file)).toHaveLength(300_000));
  await file.close();
});

/** Makes writes fail, or write only some bytes and then fail. */
async function failingWrites(bytes: number) {
  const probe = await open(process.execPath);
  const prototype = Object.getPrototypeOf(probe) as FileHandle;
  await probe.close();
  // eslint-disable-next-line @typescript-eslint/unbound-method -- called with its handle
  const write = prototype.write as (...args: unknown[]) => Promise<{ bytesWritten: number }>;
  let left = bytes;
  const spy = vi.spyOn(prototype, 'write').mockImplementation(async function (
    this: FileHandle,
    ...[buffer, offset, length, position]: unknown[]
  ) {
    if (left === 0) throw Object.assign(new Error('ENOSPC: no space'), { code: 'ENOSPC' });
    const count = Math.min(left, length as number);
    left -= count;
    return write.call(this, buffer, offset, count, position);
  } as never);
  onTestFinished(() => spy.mockRestore());
  return () => spy.mockRestore();
}

test('a disk that was full for a while loses nothing', async () => {
  const warnings: string[] = [];
  const file = await newFile((message) => warnings.push(message));
  const restore = await failingWrites(4);
  file.append('abcdef');
  await file.flush();
  file.append('g');
  await file.flush();
  expect(textOf(file)).toBe('abcd');
  expect(warnings).toEqual([expect.stringMatching(/file: no space left .*; it is tried again$/)]);
  restore();
  file.append('h');
  await file.close();
  expect(textOf(file)).toBe('abcdefgh');
  expect(warnings).toHaveLength(1);
});

test('a disk that stays full is an error at the end', async () => {
  const file = await newFile();
  await failingWrites(0);
  file.append('abc');
  await expect(file.close()).rejects.toMatchObject({ code: 'ERR_CHECKPOINT' });
});
