import {
  checkInstance,
  checkInteger,
  checkOptions,
  checkPositive,
  checkProbability,
  orDefault,
} from '../../runtime/arguments.js';
import { noGrad } from '../../tensor/autograd.js';
import { tidy } from '../../tensor/scope.js';
import type { Tensor } from '../../tensor/tensor.js';
import { constant_, kaimingUniform_ } from '../module/init.js';
import { rememberRegistered } from '../module/registration.js';
import { withoutValues } from '../module/withoutValues.js';
import { Dropout } from './dropout.js';
import { Linear, type LinearOptions } from './linear.js';

/** The settings of a low-rank update. */
export interface LoraSettings {
  /** rank r of the update, the size between its two matrices; default 8 */
  rank?: number;
  /** the update is multiplied by alpha / rank; default: the rank, so by 1 */
  alpha?: number;
  /** dropout of the input of the update, in training mode; default 0 */
  dropout?: number;
}

/** @internal */
export const loraSettingNames: readonly string[] = ['rank', 'alpha', 'dropout'];

/** The settings with their defaults. @throws RangeError, TypeError @internal */
export function checkedLoraSettings(owner: string, options: LoraSettings): Required<LoraSettings> {
  const rank = checkInteger(owner, 'rank', orDefault(options.rank, 8), 1);
  const alpha = checkPositive(owner, 'alpha', orDefault(options.alpha, rank));
  const dropout = checkProbability(owner, 'dropout', orDefault(options.dropout, 0));
  return { rank, alpha, dropout };
}

/**
 * A linear layer with a trainable low-rank update, W x + b + (alpha / rank) · B A x ("LoRA", Hu et al.
 * 2021): W and b are frozen, and only A and B are trained. B is initially zero, so the output is at first
 * that of the frozen layer; A is drawn as the weight of a `Linear`, as the library peft does.
 *
 * `applyLora` puts such layers into a model, and `mergeLora` adds the update to W.
 */
export class LoraLinear extends Linear {
  static override readonly takesPackedRows: boolean = true;

  static override readonly stateNames: Readonly<Record<string, string>> = {
    loraA: 'lora_A',
    loraB: 'lora_B',
  };

  /** `[…, inFeatures]` to `[…, rank]`, without bias. In state dicts `lora_A`. */
  loraA: Linear;
  /** `[…, rank]` to `[…, outFeatures]`, without bias; initially zero. In state dicts `lora_B`. */
  loraB: Linear;
  /** Applied to the input of A. */
  dropout: Dropout;
  /** Size between A and B. */
  readonly rank: number;
  /** The update is multiplied by alpha / rank. */
  readonly alpha: number;

  /**
   * A layer with a newly drawn W; {@link LoraLinear.over} takes an existing one.
   *
   * @throws RangeError, TypeError for sizes that are not positive integers, and settings out of range
   */
  constructor(inFeatures: number, outFeatures: number, options: LinearOptions & LoraSettings = {}) {
    checkOptions('LoraLinear', options, ['bias', ...loraSettingNames]);
    const { rank, alpha, dropout } = checkedLoraSettings('LoraLinear', options);
    super(inFeatures, outFeatures, options.bias === undefined ? {} : { bias: options.bias });
    this.rank = rank;
    this.alpha = alpha;
    this.loraA = new Linear(inFeatures, rank, { bias: false });
    this.loraB = new Linear(rank, outFeatures, { bias: false });
    constant_(this.loraB.weight, 0);
    this.dropout = new Dropout(dropout);
    freezeBase(this);
    rememberRegistered(this);
  }

  /**
   * A layer with the weight and bias of another, which are shared and frozen. A and B get its dtype and
   * device.
   *
   * @throws TypeError if `linear` is not a Linear; RangeError, TypeError for settings out of range
   */
  static over(linear: Linear, settings: LoraSettings = {}): LoraLinear {
    const owner = 'LoraLinear.over';
    checkInstance(owner, 'linear', linear, Linear, 'new Linear(inFeatures, outFeatures)');
    checkOptions(owner, settings, loraSettingNames);
    const { inFeatures, outFeatures, weight, bias } = linear;
    // Only A has values of its own.
    const lora = withoutValues(
      () => new LoraLinear(inFeatures, outFeatures, { ...settings, bias: false }),
    );
    kaimingUniform_(lora.loraA.weight, Math.sqrt(5));
    lora.loraA.to({ dtype: weight.dtype as 'float32', device: weight.device });
    lora.loraB.to({ dtype: weight.dtype as 'float32', device: weight.device });
    lora.weight.dispose();
    lora.weight = weight;
    lora.bias = bias;
    freezeBase(lora);
    rememberRegistered(lora);
    return lora.train(linear.training);
  }

  /** The factor of the update, alpha / rank. */
  get scale(): number {
    return this.alpha / this.rank;
  }

  /**
   * @param input `[…, inFeatures]`
   * @returns `[…, outFeatures]`
   * @throws as `Linear.forward`
   */
  override forward(input: Tensor): Tensor {
    return tidy(() => {
      const output = super.forward(input);
      // The factor is applied where there are the fewest numbers.
      const reduced = this.loraA.forward(this.dropout.forward(input)).mul(this.scale);
      return output.add(this.loraB.forward(reduced));
    });
  }

  /**
   * Adds the update to the weight, W + (alpha / rank) · B A, and returns a plain layer with that weight
   * and the bias. A and B are disposed of: this layer cannot be used afterwards.
   */
  merged(): Linear {
    const { weight, bias, loraA, loraB, scale } = this;
    tidy(() =>
      noGrad(() => {
        // In half precision, the update would be rounded before the sum.
        const exact = weight.dtype === 'float64' ? 'float64' : 'float32';
        const [a, b] = [loraA.weight.to({ dtype: exact }), loraB.weight.to({ dtype: exact })];
        weight.copy_(weight.to({ dtype: exact }).add(b.matmul(a).mul(scale)));
      }),
    );
    const linear = withoutValues(
      () => new Linear(this.inFeatures, this.outFeatures, { bias: false }),
    );
    linear.weight.dispose();
    linear.weight = weight;
    linear.bias = bias;
    rememberRegistered(linear);
    loraA.dispose();
    loraB.dispose();
    return linear.train(this.training);
  }

  protected override extraDescription(): string {
    return `${super.extraDescription()}, rank=${this.rank}, alpha=${this.alpha}`;
  }
}

function freezeBase({ weight, bias }: Linear): void {
  for (const parameter of [weight, bias]) {
    if (parameter === null) continue;
    parameter.requiresGrad = false;
    parameter.grad = null;
  }
}
