/**
 * What the loss is multiplied with before a backward pass in float16, whose smallest numbers are
 * 6e-8: small gradients would be 0. Halved when gradients overflow, doubled after many that do not
 * (Micikevicius et al. 2018, section 3.2; the figures are PyTorch's).
 */
export class LossScale {
  /** A power of two, so that scaling changes no digit. */
  value = 2 ** 16;
  #good = 0;

  /** @returns whether it was an overflow that a smaller scale can cure */
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
