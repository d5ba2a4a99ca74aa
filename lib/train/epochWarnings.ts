import { counted } from '../runtime/counted.js';
import type { EpochRecord } from './run/history.js';

/** Warnings about problems in an epoch, one sentence each. */
export function warningsOf(record: EpochRecord): string[] {
  const warnings: string[] = [];
  if (record.validationLoss !== null && !Number.isFinite(record.validationLoss)) {
    warnings.push(
      `warning: the validation loss of epoch ${record.epoch} is ${record.validationLoss}; ` +
        'this epoch cannot be the best',
    );
  }
  if (record.skippedBatches > 0) {
    const batches = counted(record.skippedBatches, 'batch', 'batches');
    warnings.push(`warning: skipped ${batches} without a target token`);
  }
  if (record.skippedSteps > 0) {
    const steps = counted(record.skippedSteps, 'step');
    warnings.push(`warning: skipped ${steps}: the loss or the gradients were not finite`);
  }
  return warnings;
}

/** The warning about validation rows that are too long for the model; null if there are none. */
export function longRowsWarning(rows: readonly number[]): string | null {
  if (rows.length === 0) return null;
  const list = rows.slice(0, 5).join(', ');
  return (
    `warning: skipped ${counted(rows.length, 'validation row')} longer than the model's position ` +
    `table (${rows.length === 1 ? 'row' : 'rows'} ${list}${rows.length > 5 ? ', …' : ''})`
  );
}
