/** Steps on a GPU, which works through its queue while the next step is prepared. */
import type { Batch } from '../../data/batching/batch.js';
import type { Adam, GradientScaling } from '../../optim/adam.js';
import { gradientNorm, storedGradients } from '../../optim/gradientNorm.js';
import { noGrad } from '../../tensor/autograd.js';
import { stack } from '../../tensor/create.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { LossScale } from './lossScale.js';
import { numbersLater } from './numbersLater.js';
import {
  faultOf,
  lossOf,
  setRate,
  usable,
  type StepCounts,
  type StepOutcome,
  type Steps,
  type StepSettings,
} from './steps.js';

interface PendingStep {
  /** Mean loss over the tokens of the step, and norm of the gradients. */
  readonly numbers: Promise<number[]>;
  readonly counts: StepCounts;
  readonly tokens: number;
  readonly learningRate: number;
  /** The factor that both numbers were multiplied by. */
  readonly scale: number;
}

/**
 * Steps whose numbers remain on the device. The device decides whether loss and gradients are finite
 * and how much to scale the gradients down: Adam's kernel changes nothing in a step with a fault. The
 * numbers are read while the next forward pass is queued, and checked before the next step is taken, so
 * that a fault stops the training at the same step as on the CPU.
 */
export class QueuedSteps implements Steps {
  readonly #settings: StepSettings & { readonly optimizer: Adam };
  readonly #stopsAtFault: boolean;
  /** Null if gradients have the range of float32. */
  readonly lossScale: LossScale | null;
  #pending: PendingStep | null = null;

  /** @param stopsAtFault whether no further step may be taken after one with a fault */
  constructor(settings: StepSettings & { readonly optimizer: Adam }, stopsAtFault: boolean) {
    this.#settings = settings;
    this.#stopsAtFault = stopsAtFault;
    this.lossScale = settings.dtype === 'float16' ? new LossScale() : null;
  }

  async take(batches: readonly Batch[]): Promise<StepOutcome[]> {
    const { full, counts, tokens } = usable(batches);
    if (full.length === 0) return [...(await this.finish()), { kind: 'empty', ...counts }];
    const { optimizer, parameters, clip } = this.#settings;
    const scale = this.lossScale?.value ?? 1;
    optimizer.zeroGrad();
    const losses: Tensor[] = [];
    for (const batch of full) {
      const loss = lossOf(this.#settings, batch, tokens, scale);
      losses.push(loss.detach());
      await loss.backwardAsync();
    }
    const before = await this.finish();
    if (this.mustStop(before)) return before;

    const { numbers, ...scaling } = judged(losses, parameters, clip, scale);
    const taken = before.filter(({ kind }) => kind === 'taken').length;
    const learningRate = setRate(this.#settings, taken);
    await optimizer.stepScaledAsync(scaling);
    this.expect(numbers, { counts, tokens, learningRate, scale });
    return before;
  }

  /** Whether these outcomes forbid a further step. */
  mustStop(outcomes: readonly StepOutcome[]): boolean {
    return this.#stopsAtFault && outcomes.some(isFault);
  }

  /** Starts reading the numbers of a step submitted to the device. */
  expect(numbers: Tensor, step: Omit<PendingStep, 'numbers'>): void {
    this.#pending = { ...step, numbers: numbersLater(numbers) };
  }

  async finish(): Promise<StepOutcome[]> {
    const pending = this.#pending;
    if (pending === null) return [];
    this.#pending = null;
    const { counts, tokens, learningRate, scale } = pending;
    const [scaledMean = NaN, scaledNorm = NaN] = await pending.numbers;
    const [lossSum, norm] = [(scaledMean / scale) * tokens, scaledNorm / scale];
    const fault = faultOf(lossSum, norm);
    if (fault === null) {
      this.lossScale?.afterGoodStep();
      return [{ kind: 'taken', lossSum, tokens, learningRate, gradientNorm: norm, ...counts }];
    }
    const isOverflow = Number.isFinite(lossSum) && this.lossScale?.afterOverflow() === true;
    return [{ kind: 'skipped', fault, isOverflow, ...counts }];
  }

  dispose(): void {
    this.#pending = null;
  }
}

/**
 * Decides on the device whether a step is taken and how its gradients are scaled.
 *
 * @param losses losses of the parts of the step, times `scale`
 * @returns `numbers`, float64 [2]: loss and norm of the gradients, both times `scale`
 */
export function judged(
  losses: readonly Tensor[],
  parameters: readonly Tensor[],
  clip: number,
  scale: number,
): GradientScaling & { numbers: Tensor } {
  return noGrad(() =>
    tidy(() => {
      const loss = stack(losses).to({ dtype: 'float64' }).sum();
      const gradients = storedGradients(parameters);
      const norm = gradients.length === 0 ? loss.mul(0) : gradientNorm(gradients, 2);
      const fault = loss.add(norm).isfinite().logicalNot().to({ dtype: 'float32' });
      // As in clipGradNorm: divided by norm / clip if that is above 1.
      const excess = norm.div(scale).add(1e-6).div(clip).clamp(1);
      const divisor = excess.mul(scale).to({ dtype: 'float32' });
      return { numbers: stack([loss, norm]), divisor, fault };
    }),
  );
}

/** An overflow in float16 is not a fault: the next loss scale is smaller. */
function isFault(outcome: StepOutcome): boolean {
  return outcome.kind === 'skipped' && outcome.isOverflow !== true;
}
