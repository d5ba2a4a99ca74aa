/** Modules without initial weights, for those whose weights are all loaded. */

let drawsValues = true;

/**
 * Runs `make` without drawing or copying weights: for modules whose weights are all loaded afterwards.
 * Their values are undefined until then.
 */
export function withoutValues<T>(make: () => T): T {
  const before = drawsValues;
  drawsValues = false;
  try {
    return make();
  } finally {
    drawsValues = before;
  }
}

/** False within {@link withoutValues}. */
export function hasValues(): boolean {
  return drawsValues;
}
