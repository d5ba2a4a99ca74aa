/** What a request for a translation asks for, checked. */
import { missingParameter, RequestError } from './requestError.js';
import type { Fields } from './requestFields.js';

/** Limits of a request. */
export interface RequestLimits {
  /** Number of texts. */
  readonly batchLimit: number;
  /** Characters (UTF-16 units) of a text. */
  readonly charLimit: number;
  /** Number of alternatives. */
  readonly alternativesLimit: number;
}

/** A checked request. */
export interface TranslateRequest {
  readonly texts: readonly string[];
  /** Whether `q` was an array, so that the response has arrays too. */
  readonly isBatch: boolean;
  /** Code of a language, or `auto`. */
  readonly source: string;
  readonly target: string;
  readonly format: 'text' | 'html';
  /** Number of further translations asked for. */
  readonly alternatives: number;
}

/** @throws RequestError 400 naming the parameter */
export function parseTranslateRequest(fields: Fields, limits: RequestLimits): TranslateRequest {
  const { texts, isBatch } = parseTexts(fields['q'], limits);
  return {
    texts,
    isBatch,
    source: parseCode(fields['source'], 'source'),
    target: parseCode(fields['target'], 'target'),
    format: parseFormat(fields['format']),
    alternatives: parseAlternatives(fields['alternatives'], limits),
  };
}

/** The texts of the parameter `q`. @throws RequestError 400 */
export function parseTexts(
  q: unknown,
  { batchLimit, charLimit }: RequestLimits,
): { texts: readonly string[]; isBatch: boolean } {
  const isBatch = Array.isArray(q);
  if (q === undefined || q === null || q === '' || (isBatch && q.length === 0)) {
    throw missingParameter('q');
  }
  const texts: readonly unknown[] = isBatch ? q : [q];
  if (texts.length > batchLimit) throw exceeds(texts.length, batchLimit);
  const checked = texts.map((text, index) => {
    const name = isBatch ? `q[${index}]` : 'q';
    if (typeof text !== 'string') {
      throw new RequestError(400, `Invalid request: ${name} parameter is not a text`);
    }
    if (text.length > charLimit) throw exceeds(text.length, charLimit);
    checkCharacters(text, name);
    return text;
  });
  return { texts: checked, isBatch };
}

function exceeds(size: number, limit: number): RequestError {
  return new RequestError(400, `Invalid request: request (${size}) exceeds text limit (${limit})`);
}

/** Control characters, without tabs, line ends and form feeds; and halves of surrogate pairs. */
const invalid = /[\0-\x08\x0e-\x1f\x7f]|\p{Surrogate}/u;

function checkCharacters(text: string, name: string): void {
  const found = invalid.exec(text);
  if (found === null) return;
  const code = found[0].charCodeAt(0);
  const kind = code < 0x80 ? 'control character' : 'lone surrogate';
  const hex = code.toString(16).toUpperCase().padStart(4, '0');
  throw new RequestError(
    400,
    `Invalid request: ${name} parameter has the ${kind} U+${hex} at character ${found.index}`,
  );
}

function parseCode(value: unknown, name: string): string {
  if (value === undefined || value === null || value === '') throw missingParameter(name);
  if (typeof value === 'string') return value;
  throw new RequestError(400, `Invalid request: ${name} parameter is not a text`);
}

function parseFormat(value: unknown): 'text' | 'html' {
  if (value === undefined || value === null || value === '') return 'text';
  if (value === 'text' || value === 'html') return value;
  const shown = typeof value === 'string' ? value.slice(0, 40) : typeof value;
  throw new RequestError(400, `${shown} format is not supported`);
}

function parseAlternatives(value: unknown, { alternativesLimit }: RequestLimits): number {
  if (value === undefined || value === null || value === '') return 0;
  const number = typeof value === 'string' || typeof value === 'number' ? Number(value) : NaN;
  if (!Number.isFinite(number)) {
    throw new RequestError(400, 'Invalid request: alternatives parameter is not a number');
  }
  if (number > alternativesLimit) {
    throw new RequestError(
      400,
      `Invalid request: alternatives parameter must be <= ${alternativesLimit}`,
    );
  }
  return Math.max(0, Math.floor(number));
}
