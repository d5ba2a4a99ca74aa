/** Steps on a GPU that are recorded once for each batch size and then replayed. */
import type { Batch } from '../../data/batching/batch.js';
import type { PackedBatch } from '../../data/batching/packedBatch.js';
import { Embedding } from '../../nn/layers/embedding.js';
import type { Module } from '../../nn/module/module.js';
import { isPositionTable } from '../../nn/layers/positionTable.js';
import type { Transformer } from '../../nn/model/transformer.js';
import type { Adam } from '../../optim/adam.js';
import { autocast } from '../../tensor/autocast.js';
import { noGrad } from '../../tensor/autograd.js';
import { full, zeros } from '../../tensor/create.js';
import type { RecordedWork, Recorder } from '../../tensor/cudaGraph.js';
import type { Device } from '../../tensor/device.js';
import { call, callTensor } from '../../tensor/dispatch.js';
import { movedTo } from '../../tensor/movedTo.js';
import { keep, tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { judged, QueuedSteps } from './queuedSteps.js';
import { BucketInputs, bucketOf } from './stepBuckets.js';
import { packedLoss } from './tokenLoss.js';
import {
  setRate,
  smoothingOf,
  usable,
  type StepOutcome,
  type Steps,
  type StepSettings,
} from './steps.js';

/** Maximum number of seeds that one step can draw: one for each dropout of the model. */
const mostSeeds = 4096;
/** Maximum number of recordings kept; batches of further sizes are computed without recording. */
const mostRecordings = 32;

interface Recording {
  readonly inputs: BucketInputs;
  readonly work: RecordedWork;
  /** Number of seeds that it draws. */
  readonly seeds: number;
  /** float64 [2]: loss and norm of the gradients. */
  readonly numbers: Tensor;
}

/**
 * Steps that are replayed: the forward and backward pass, the check for faults and Adam's update are
 * recorded at the second batch of a size and submitted to the GPU as one unit from then on. Values that
 * change from step to step are in tensors that the recording reads: ids and boundaries, 1 / tokens, the
 * learning rates, and the seeds of dropout, which are drawn as without recording.
 */
export class CapturedSteps implements Steps {
  readonly #settings: StepSettings & { readonly optimizer: Adam };
  readonly #queued: QueuedSteps;
  readonly #record: Recorder;
  readonly #device: Device;
  readonly #waits: boolean;
  readonly #tables: { readonly src: number; readonly tgt: number };
  readonly #mostPositions: number;
  readonly #recordings = new Map<string, Recording | null>();
  readonly #slots: Tensor;
  readonly #inverseTokens: Tensor;
  readonly #rates: readonly Tensor[];

  /** @param record records a CUDA graph, or a substitute for one */
  constructor(
    settings: StepSettings & { readonly optimizer: Adam },
    stopsAtFault: boolean,
    record: Recorder,
  ) {
    this.#settings = settings;
    this.#queued = new QueuedSteps(settings, stopsAtFault);
    this.#record = record;
    const { srcEmbed, tgtEmbed, generator } = settings.model;
    const { device, dtype } = generator.proj.weight;
    this.#device = device;
    // On a GPU, attention in float64 consists of plain ops that read the boundaries.
    this.#waits = device !== 'cpu' && dtype === 'float64';
    this.#tables = {
      src: entriesOf(srcEmbed),
      tgt: Math.min(entriesOf(tgtEmbed), generator.proj.outFeatures),
    };
    this.#mostPositions = mostPositionsOf(settings.model);
    this.#slots = keep(zeros([mostSeeds], { dtype: 'int64', device }));
    this.#inverseTokens = keep(zeros([], { device }));
    this.#rates = settings.optimizer.paramGroups.map(() => keep(zeros([], { device })));
  }

  async take(batches: readonly Batch[]): Promise<StepOutcome[]> {
    const { full: filled, counts, tokens } = usable(batches);
    const { pad, packs } = this.#settings;
    const [batch] = filled;
    const packed = filled.length === 1 && packs() && !this.#waits ? batch?.packed : undefined;
    if (packed === undefined || packed.tgtY.numel !== tokens) return this.#queued.take(batches);
    const bucket = bucketOf(packed, this.#mostPositions);
    const key = Object.values(bucket).join();
    const known = this.#recordings.get(key);
    // The first batch of a size is not recorded: it creates what is created once, such as Adam's state.
    if (known === undefined) {
      if (this.#recordings.size < mostRecordings) this.#recordings.set(key, null);
      return this.#queued.take(batches);
    }
    const before = await this.finish();
    if (this.#queued.mustStop(before)) return before;
    const taken = before.filter(({ kind }) => kind === 'taken').length;
    const learningRate = setRate(this.#settings, taken);
    const recording = known ?? this.#recorded(new BucketInputs(bucket, pad, this.#device), packed);
    this.#recordings.set(key, recording);
    if (known !== null) known.inputs.load(packed, this.#tables);
    this.#prepare(recording, tokens);
    recording.work.replay();
    this.#queued.expect(recording.numbers, { counts, tokens, learningRate, scale: 1 });
    return before;
  }

  get lossScale(): null {
    // Recorded steps do not scale the loss.
    return null;
  }

  async finish(): Promise<StepOutcome[]> {
    return this.#queued.finish();
  }

  dispose(): void {
    for (const recording of this.#recordings.values()) {
      recording?.work.dispose();
      recording?.inputs.dispose();
      recording?.numbers.dispose();
    }
    this.#recordings.clear();
    for (const tensor of [this.#slots, this.#inverseTokens, ...this.#rates]) tensor.dispose();
  }

  /** Writes the numbers of a step to the tensors that the recording reads. */
  #prepare({ seeds }: Recording, tokens: number): void {
    tidy(() => {
      this.#put(this.#inverseTokens, full([], 1 / tokens));
      this.#settings.optimizer.paramGroups.forEach(({ lr }, index) => {
        this.#put(this.#rates[index] as Tensor, full([], lr));
      });
      const drawn = callTensor('torchformer_device::draw_seeds', seeds);
      this.#put(this.#slots.narrow(0, 0, seeds), drawn);
    });
  }

  #put(target: Tensor, source: Tensor): void {
    noGrad(() => target.copy_(movedTo(this.#device, source)));
  }

  #recorded(inputs: BucketInputs, packed: PackedBatch): Recording {
    const numbers = keep(zeros([2], { dtype: 'float64', device: this.#device }));
    let seeds = 0;
    try {
      // Load valid ids first: the recorded work cannot check them.
      inputs.load(packed, this.#tables);
      const work = this.#record(this.#device, () => {
        call('torchformer_device::seed_slots', this.#slots);
        try {
          tidy(() => this.#step(inputs, numbers));
        } finally {
          seeds = call('torchformer_device::seed_slots', null) as number;
        }
      });
      return { inputs, work, seeds, numbers };
    } catch (error) {
      inputs.dispose();
      numbers.dispose();
      throw error;
    }
  }

  #step(inputs: BucketInputs, numbers: Tensor): void {
    const { model, optimizer, parameters, pad, dtype, clip } = this.#settings;
    optimizer.zeroGrad();
    const loss = autocast(dtype, () => {
      return packedLoss(model, inputs, pad, smoothingOf(this.#settings)).mul(this.#inverseTokens);
    });
    loss.backward();
    const { numbers: found, ...scaling } = judged([loss.detach()], parameters, clip, 1);
    optimizer.stepScaled({ ...scaling, rates: this.#rates });
    noGrad(() => numbers.copy_(found));
  }
}

/** The number of ids in an embedding. */
function entriesOf(embed: Module): number {
  const tables = embed.modules().filter((module) => module instanceof Embedding);
  return Math.min(...tables.map(({ count }) => count));
}

/** The length of the shortest position table. */
function mostPositionsOf(model: Transformer): number {
  return Math.min(...[...model.modules()].filter(isPositionTable).map(({ maxLen }) => maxLen));
}
