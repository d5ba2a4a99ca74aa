/** The events of made-up runs. */
import type {
  EpochRecord,
  StartEvent,
  StepEvent,
  TrainingEvents,
  TrainingListener,
  ValidationRecord,
} from 'torchformer';

export function startEvent(step = 0, changes: Partial<StartEvent> = {}): StartEvent {
  return {
    step,
    epoch: 0,
    seconds: step / 2,
    epochs: 3,
    steps: Infinity,
    parameters: 1000,
    out: null,
    ...changes,
  };
}

/** 100 tokens in half a second. */
export function stepEvent(step: number, changes: Partial<StepEvent> = {}): StepEvent {
  return {
    step,
    epoch: 1,
    loss: 4 / step,
    tokens: 100,
    learningRate: 0.5,
    gradientNorm: 2,
    seconds: step / 2,
    batch: step,
    batches: null,
    epochLoss: 1,
    epochTokens: 100 * step,
    ...changes,
  };
}

export function validationRecord(
  step: number,
  changes: Partial<ValidationRecord> = {},
): ValidationRecord {
  return {
    step,
    epoch: 1,
    loss: 2,
    perplexity: Math.exp(2),
    accuracy: 0.5,
    tokens: 50,
    bleu: null,
    chrf: null,
    seconds: 1,
    best: true,
    samples: [],
    ...changes,
  };
}

export function epochRecord(epoch: number, step: number): EpochRecord {
  return {
    epoch,
    step,
    trainLoss: 3,
    validationLoss: 2,
    trainTokens: 100 * step,
    validationTokens: 50,
    trainSeconds: step / 2,
    validationSeconds: 1,
    skippedBatches: 0,
    skippedSteps: 0,
    best: true,
  };
}

/** What `log.jsonl` has of a step. */
export function stepRecord(event: StepEvent) {
  const { step, epoch, loss, tokens, learningRate, gradientNorm, seconds } = event;
  return { step, epoch, loss, tokens, learningRate, gradientNorm, seconds };
}

/** A sample with attention; its texts contain what would end a script, and control characters. */
export function sampleTranslation(): ValidationRecord['samples'][number] {
  return {
    source: 'ein </script><script>alert(1)</script> Haus',
    translation: 'a <b>house</b>\u0007 <!-- \u2028',
    reference: 'a house',
    attention: {
      sourceTokens: ['ein', 'Haus'],
      targetTokens: ['a', 'house'],
      weights: [
        [0.9, 0.1],
        [0.25, 0.75],
      ],
    },
  };
}

/** Sends the events of a whole run: a validation of one second each 10 steps, an epoch each 20. */
export async function sendRun(
  listeners: readonly TrainingListener[],
  steps: number,
  changes: Partial<StepEvent> = {},
): Promise<void> {
  const send = async <Name extends keyof TrainingEvents>(
    name: Name,
    event: TrainingEvents[Name],
  ) => {
    for (const listener of listeners) await listener[name]?.(event);
  };
  await send('start', startEvent());
  for (let step = 1; step <= steps; step++) {
    const epoch = Math.ceil(step / 20);
    const seconds = step / 2 + Math.floor((step - 1) / 10);
    await send('step', stepEvent(step, { epoch, seconds, ...changes }));
    if (step % 10 === 0) {
      const scores = { loss: 2 + 10 / step, bleu: step / 4, chrf: step / 2 };
      const record = { epoch, ...scores, samples: [sampleTranslation()] };
      await send('validation', validationRecord(step, record));
    }
    if (step % 20 === 0) await send('epoch', epochRecord(epoch, step));
  }
  const seconds = steps / 2 + Math.floor(steps / 10);
  await send('end', { step: steps, epoch: 1, seconds, reason: 'finished' });
}

/** The record of the best epoch so far, of 1,000 target tokens in 2 seconds. */
export function epochOf(
  epoch: number,
  step: number,
  trainLoss: number,
  validationLoss: number | null,
): EpochRecord {
  return {
    epoch,
    step,
    trainLoss,
    validationLoss,
    trainTokens: 1000,
    validationTokens: 100,
    trainSeconds: 2,
    validationSeconds: 1,
    skippedBatches: 0,
    skippedSteps: 0,
    best: true,
  };
}
