/** What the metrics have in common: numbers of each sentence that add up to those of a corpus. */

/** The score of a corpus or a sentence, by any metric. */
export interface MetricScore {
  /** As sacrebleu names it: `BLEU`, `chrF2`, `chrF2++`, `TER`. */
  readonly name: string;
  /** From 0 to 100; TER may be larger. */
  readonly score: number;
  /**
   * All settings that the score depends on, in the form of sacrebleu. `version` is the version of sacrebleu
   * that the scores equal, `torchformer` the version of this package, which computed them.
   */
  readonly signature: string;
}

/** A metric with its settings. */
export interface Metric<Score extends MetricScore> {
  /** The numbers of a sentence with its references, of which there is at least one. */
  statistics(hypothesis: string, references: readonly string[]): number[];
  /** The score without its signature, of the sums of statistics. */
  scoreOf(sums: ArrayLike<number>): Omit<Score, 'signature'>;
  /** The settings in sacrebleu's order: name and value. */
  readonly settings: readonly (readonly [string, string | number])[];
}

/** The sums of the statistics of all sentences. */
export function sumOf(statistics: readonly (readonly number[])[]): number[] {
  const [first = []] = statistics;
  return first.map((_, index) =>
    statistics.reduce((sum, numbers) => sum + (numbers[index] as number), 0),
  );
}
