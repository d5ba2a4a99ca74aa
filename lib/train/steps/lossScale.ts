/**
 * The factor applied to the loss before a backward pass in float16, whose smallest numbers are 6e-8:
 * small gradients would become 0. It is halved when gradients overflow and doubled after many steps
 * without overflow (Micikevicius et al. 2018, section 3.2; the constants are PyTorch's).
 */
export class LossScale {
  /** A power of two, so that scaling is exact. */
  value = 2 ** 16;
  #good = 0;

  /** For a checkpoint. */
  get state(): { readonly value: number; readonly good: number } {
    return { value: this.value, good: this.#good };
  }

  set state({ value, good }: { readonly value: number; readonly good: number }) {
    this.value = value;
    this.#good = good;
  }

  /** @returns whether a smaller scale can avoid the overflow */
  afterOverflow(): boolean {
    this.#good = 0;
    if (this.value <= 1) return false;
    this.value /= 2;
    return true;
  }

  /** After a step whose gradients were finite. */
  afterGoodStep(): void {
    const growthInterval = 2000;
    if (++this.#good < growthInterval) return;
    this.#good = 0;
    this.value *= 2;
  }
}
