/** The words for an estimate. */
import type { MemoryEstimate, TimeEstimate, TrainingEstimate } from './estimate.js';

/**
 * Describes an estimate in lines for people:
 *
 * ```text
 * memory: 1.2 GB = weights 0.3 + gradients 0.3 + Adam 0.5 + batch 0.1 (the largest, 3,000 tokens); 15.8 GB available
 * time: 2:05 an epoch, 25:00 in all
 * ```
 *
 * The second line is missing if nothing was measured.
 */
export function describeEstimate({ memory, time }: TrainingEstimate): string[] {
  const { parts, unit } = describeParts(memory);
  const sum = `${inUnit(memory.total, unit)} = ${parts}`;
  const lines = [`memory: ${sum}; ${describeBytes(memory.available)} available`];
  if (time !== null) lines.push(describeTime(time));
  return lines;
}

function describeTime({ epoch, total }: TimeEstimate): string {
  const all = total === null ? '' : `, ${clock(total)} in all`;
  return `time: ${clock(epoch)} an epoch${all}`;
}

/** Says what is needed for what, how much there is, and what to change. */
export function describeShortage(memory: MemoryEstimate): string {
  const { parts, unit } = describeParts(memory);
  const { largestBatch, activations } = memory;
  const fixes = [
    ...(largestBatch === null || activations === 0
      ? []
      : ['batches of fewer tokens with a larger accumulate']),
    ...(isSmall(memory) ? [] : ['the optimizer Adafactor']),
    'a smaller model',
  ];
  return (
    `training needs ${inUnit(memory.total, unit)} of memory (${parts}), but ` +
    `${describeBytes(memory.available)} are available; choose ${listed(fixes)}`
  );
}

/** Whether another optimizer would save nothing. */
function isSmall({ optimizer, weights }: MemoryEstimate): boolean {
  return optimizer !== null && optimizer < weights / 4;
}

function describeParts(memory: MemoryEstimate): { parts: string; unit: Unit } {
  const unit = unitOf(memory.total);
  const { optimizer, optimizerName, averages, activations, largestBatch } = memory;
  const part = (name: string, bytes: number) => `${name} ${numberIn(bytes, unit)}`;
  const parts = [
    part('weights', memory.weights),
    part('gradients', memory.gradients),
    optimizer === null ? `${optimizerName} unknown` : part(optimizerName, optimizer),
    ...(averages === 0 ? [] : [part('averages', averages)]),
  ];
  if (activations !== null && largestBatch !== null) {
    const tokens = largestBatch.tokens.toLocaleString('en-US');
    const how = largestBatch.wasRun ? '' : ', extrapolated from a part';
    parts.push(`${part('batch', activations)} (the largest, ${tokens} tokens${how})`);
  }
  return { parts: parts.join(' + '), unit };
}

/** A unit of memory: its name and bytes. */
type Unit = readonly [name: string, bytes: number];

function unitOf(bytes: number): Unit {
  if (bytes >= 1e9) return ['GB', 1e9];
  return bytes >= 1e6 ? ['MB', 1e6] : ['kB', 1e3];
}

function inUnit(bytes: number, unit: Unit): string {
  return `${numberIn(bytes, unit)} ${unit[0]}`;
}

function numberIn(bytes: number, [, size]: Unit): string {
  return (bytes / size).toFixed(1);
}

function describeBytes(bytes: number): string {
  return inUnit(bytes, unitOf(bytes));
}

function listed(parts: readonly string[]): string {
  const [last = '', ...others] = parts.toReversed();
  return others.length === 0 ? last : `${others.toReversed().join(', ')} or ${last}`;
}

/** `0.4 s`, `0:42`, `2:05`, `1:02:05`. */
function clock(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const two = (value: number) => String(value).padStart(2, '0');
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours === 0
    ? `${minutes}:${two(whole % 60)}`
    : `${hours}:${two(minutes)}:${two(whole % 60)}`;
}
