/** The participants of suite `decode`, and their turns. */
import { writeFile } from 'node:fs/promises';
import { runOurs, runPeer, type ChildOptions } from '../child.js';
import type { BenchOptions } from '../options.js';
import { attempt } from '../report.js';
import { precisions, type DecoderName, type Precision } from './decoders.js';
import type { DecodeCase, DecodeJob, DecodeResult } from './decodeJob.js';

/** What each can compute with. CTranslate2 has no bfloat16 on processors. */
const supported: Readonly<Record<DecoderName, readonly Precision[]>> = {
  ours: precisions,
  recompute: ['float32'],
  ctranslate2: ['float32', 'int8'],
  'pytorch-cached': ['float32', 'bfloat16'],
};

export interface DecodeParticipant {
  readonly decoder: DecoderName;
  readonly precision: Precision;
}

/** Every decoder and precision that was asked for. */
export function decodeParticipants({
  decoders,
  precisions: wanted,
}: Pick<BenchOptions, 'decoders' | 'precisions'>): DecodeParticipant[] {
  return decoders.flatMap((decoder) =>
    supported[decoder]
      .filter((precision) => wanted.includes(precision))
      .map((precision) => ({ decoder, precision })),
  );
}

/** `ours int8` */
export function participantName({ decoder, precision }: DecodeParticipant): string {
  return `${decoder} ${precision}`;
}

export function isOurs({ decoder }: DecodeParticipant): boolean {
  return decoder === 'ours' || decoder === 'recompute';
}

/** Whether a case can be asked of a participant: recomputing searches greedily only. */
export function canDecode({ decoder }: DecodeParticipant, { beam }: DecodeCase): boolean {
  return decoder !== 'recompute' || beam === 1;
}

/** One turn of one participant. */
export interface DecodeTurn {
  readonly participant: DecodeParticipant;
  readonly result: DecodeResult;
}

export interface DecodeTurnOptions extends ChildOptions {
  /** What the turns are called in messages. */
  readonly title: string;
  /** Start of the names of the job files. */
  readonly file: string;
  readonly python: string;
  readonly rounds: number;
}

/** Runs every participant once per round; one that failed gets no further turns. */
export async function takeDecodeTurns(
  job: DecodeJob,
  participants: readonly DecodeParticipant[],
  { title, file, python, rounds, ...limits }: DecodeTurnOptions,
): Promise<DecodeTurn[]> {
  const turns: DecodeTurn[] = [];
  const failed = new Set<DecodeParticipant>();
  for (let round = 1; round <= rounds; round++) {
    for (const participant of participants) {
      const cases = job.cases.filter((each) => canDecode(participant, each));
      if (cases.length === 0 || failed.has(participant)) continue;
      const { decoder, precision } = participant;
      const own = `${file}.${decoder}.json`;
      await writeFile(own, JSON.stringify({ ...job, cases }));
      const name = participantName(participant);
      const result = await attempt(`${title}, round ${round} of ${rounds}: ${name}`, () => {
        if (isOurs(participant)) {
          return runOurs<DecodeResult>('decode/decodeOurs.js', [own, decoder, precision], limits);
        }
        const program = decoder === 'ctranslate2' ? 'ctranslate2_decode.py' : 'cached_decode.py';
        const args = ['--job', own, '--precision', precision];
        return runPeer<DecodeResult>(python, program, args, limits);
      });
      if (result === null) failed.add(participant);
      else turns.push({ participant, result });
    }
  }
  return turns;
}
