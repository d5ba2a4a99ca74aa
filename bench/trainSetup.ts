/** Our participant of suite `train`: model, weights, batches and the public Trainer. */
import { readFile } from 'node:fs/promises';
import {
  makeBatch,
  makeModel,
  manualSeed,
  setNumThreads,
  Trainer,
  type Batch,
  type TrainerOptions,
  type TrainingListener,
  type Transformer,
} from 'torchformer';
import type { TrainDType } from './options.js';
import type { BatchFile, IdPair, ModelJob, TrainJob } from './trainJob.js';
import { loadWeights } from './weights.js';

export interface Participant {
  readonly job: TrainJob;
  readonly trainer: Trainer;
  /** One per step. */
  readonly batches: readonly Batch[];
}

/** @param reporter is notified of every step */
export async function setUp(
  jobFile: string,
  dtype: TrainDType,
  reporter: TrainingListener | null,
): Promise<Participant> {
  const job = JSON.parse(await readFile(jobFile, 'utf8')) as TrainJob;
  const { bos, eos, batches } = JSON.parse(await readFile(job.batches, 'utf8')) as BatchFile;
  const { trainer } = await makeTrainer(job, { bos, eos, dtype, reporter });
  return { job, trainer, batches: batches.slice(0, job.steps).map(batchOf) };
}

export interface TrainerParts {
  readonly bos: number;
  readonly eos: number;
  readonly dtype: TrainDType;
  /** Is notified of every step. */
  readonly reporter: TrainingListener | null;
}

/** A model with the job's weights, and its trainer. */
export async function makeTrainer(
  job: ModelJob,
  { bos, eos, dtype, reporter }: TrainerParts,
): Promise<{ readonly model: Transformer; readonly trainer: Trainer }> {
  setNumThreads(job.threads);
  const { vocabSize, ...widths } = job.model;
  const model = makeModel(vocabSize, {
    ...widths,
    dropout: job.dropout,
    ...(job.dropout === 0 ? { attentionDropout: 0 } : {}),
  });
  await loadWeights(model, job.weights);
  if (job.device !== undefined) model.to(job.device);
  manualSeed(job.seed);
  const options: TrainerOptions = {
    specialIds: { pad: 0, bos, eos },
    learningRate: job.learningRate,
    reporter,
  };
  const withType = dtype === 'float32' ? options : { ...options, dtype };
  return { model, trainer: new Trainer(model, withType) };
}

/** A batch of the public API. */
export function batchOf(pairs: readonly IdPair[]): Batch {
  const rows = pairs.map(({ src, tgt }, row) => ({ src: [...src], tgt: [...tgt], row: row + 1 }));
  return makeBatch(rows, 0);
}
