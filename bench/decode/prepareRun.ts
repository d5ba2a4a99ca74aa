/** What comes before the turns of suite `decode`. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runPeer } from '../child.js';
import type { BenchOptions } from '../options.js';
import { attempt, print } from '../report.js';
import type { DecodeJob } from './decodeJob.js';
import {
  decodeParticipants,
  isOurs,
  participantName,
  type DecodeParticipant,
} from './decodeParticipants.js';

/** A job with its weights for CTranslate2, and those who can take part. */
export async function prepareRun(
  name: string,
  job: Omit<DecodeJob, 'ctranslate2'>,
  options: BenchOptions,
  folder: string,
): Promise<{ readonly job: DecodeJob; readonly participants: DecodeParticipant[] }> {
  const complete: DecodeJob = { ...job, ctranslate2: join(folder, `${name}.ctranslate2`) };
  const wanted = decodeParticipants(options);
  const missing = wanted.filter(
    ({ decoder, precision }) => decoder === 'ours' && !job.ownPrecisions.includes(precision),
  );
  if (missing.length > 0) {
    const names = missing.map(participantName).join(' and ');
    print(`without ${names}: this version of the package has no SequenceGenerator for it`);
  }
  let participants = wanted.filter(
    (each) => !missing.includes(each) && (options.peers.length > 0 || isOurs(each)),
  );
  if (participants.some(({ decoder }) => decoder === 'ctranslate2')) {
    await mkdir(complete.ctranslate2, { recursive: true });
    const file = join(folder, `${name}.convert.json`);
    await writeFile(file, JSON.stringify(complete));
    const converted = await attempt(`decode ${name}: converting weights for CTranslate2`, () =>
      runPeer(options.python, 'ctranslate2_convert.py', [
        '--job',
        file,
        '--output',
        complete.ctranslate2,
      ]),
    );
    if (converted === null) {
      participants = participants.filter(({ decoder }) => decoder !== 'ctranslate2');
    }
  }
  return { job: complete, participants };
}
