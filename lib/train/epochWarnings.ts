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
