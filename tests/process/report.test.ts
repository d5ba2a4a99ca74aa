/** `torchformer report` as a process. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { nowhere, runCommand, temporaryFolder } from './support.js';

const step = (number: number) =>
  `{"event":"step","step":${number},"epoch":1,"loss":${4 / number},"tokens":10,` +
  `"learningRate":0.1,"gradientNorm":1,"seconds":${number}}\n`;

/** A run that was killed while it wrote its third step. */
function killedRun(name: string): string {
  const folder = join(temporaryFolder(), name);
  mkdirSync(folder);
  writeFileSync(join(folder, 'log.jsonl'), step(1) + step(2) + step(3).slice(0, 30));
  return folder;
}

describe('torchformer report', () => {
  let withoutLibtorch: Record<string, string | null>;
  beforeAll(() => {
    withoutLibtorch = { ...nowhere('/nonexistent') };
  });

  it('writes the page into the folder of the run and prints its path, without libtorch', () => {
    const run = killedRun('a');
    const page = join(run, 'report.html');
    expect(runCommand(['report', run], withoutLibtorch)).toEqual({
      status: 0,
      output: `${page}\n`,
      errors: '',
    });
    expect(readFileSync(page, 'utf8')).toContain('"points":{"x":[1,2],"y":[4,2]}');
  });

  it('compares several runs', () => {
    const out = join(temporaryFolder(), 'both.html');
    const { status } = runCommand(['report', killedRun('a'), killedRun('b'), '--out', out]);
    expect(status).toBe(0);
    expect(readFileSync(out, 'utf8')).toContain('<title>a, b · training report</title>');
  });

  it('refuses a folder without a run, in one line', () => {
    const folder = temporaryFolder();
    const { status, errors } = runCommand(['report', folder]);
    expect(status).toBe(1);
    expect(errors).toBe(
      `torchformer: ${folder}: there is no run in this folder, because it has neither log.jsonl ` +
        'nor history.json; pass the folder in which a training writes [ERR_DATA]\n',
    );
    expect(existsSync(join(folder, 'report.html'))).toBe(false);
  });

  it('names the line of a damaged log', () => {
    const run = killedRun('a');
    writeFileSync(join(run, 'log.jsonl'), `${step(1)}{"event":"st\n${step(3)}`);
    const { status, errors } = runCommand(['report', run]);
    expect(status).toBe(1);
    expect(errors).toMatch(
      /log\.jsonl:2: this line cannot be read: .* if it is damaged, remove it/,
    );
  });

  it('needs a run', () => {
    expect(runCommand(['report'])).toMatchObject({ status: 1, output: '' });
  });
});
