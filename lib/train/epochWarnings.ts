import { counted } from '../runtime/counted.js';
import type { EpochRecord } from './run/history.js';

/** What a user should know of an epoch that did not go well, a sentence each. */
export function warningsOf(record: EpochRecord): string[] {
  const warnings: string[] = [];
  if (record.validationLoss !== null && !Number.isFinite(record.validationLoss)) {
    warnings.push(
      `warning: the validation loss of epoch ${record.epoch} is ${record.validationLoss}; ` +
        'it is never the best model',
    );
  }
  if (record.skippedBatches > 0) {
    const batches = counted(record.skippedBatches, 'batch', 'batches');
    warnings.push(`warning: skipped ${batches} without a target token`);
  }
  if (record.skippedSteps > 0) {
    const steps = counted(record.skippedSteps, 'step');
    warnings.push(`warning: skipped ${steps}: loss or gradients not finite`);
  }
  return warnings;
}

/** What a user should know of validation rows that the model has no positions for; null: nothing. */
export function longRowsWarning(rows: readonly number[]): string | null {
  if (rows.length === 0) return null;
  const list = rows.slice(0, 5).join(', ');
  return (
    `warning: left out ${counted(rows.length, 'validation row')} longer than the model's table of ` +
    `positions (${rows.length === 1 ? 'row' : 'rows'} ${list}${rows.length > 5 ? ', …' : ''})`
  );
}
