/** Errors as responses: LibreTranslate's body, a status, and what goes to the log. */
import { TorchError } from '../runtime/errors.js';
import { RequestError } from './requestError.js';

/** A response for an error. */
export interface ErrorResponse {
  readonly status: number;
  readonly body: { readonly error: string };
  /** Seconds for the header `Retry-After`. */
  readonly retryAfter: number | undefined;
}

/** Texts for the errors that Fastify finds before a route does. */
const messages: Readonly<Record<number, string>> = {
  413: 'The request is too large',
  415: 'The content type must be application/json, application/x-www-form-urlencoded or multipart/form-data',
};

/**
 * The response for an error. The client is told about faults of its request; faults of the server are
 * logged, and the client only learns that there was one.
 */
export function errorResponse(error: unknown, log: (line: string) => void): ErrorResponse {
  if (error instanceof RequestError) {
    if (error.cause !== undefined && error.status >= 500)
      log(`${error.message}: ${told(error.cause)}`);
    const { status, message, retryAfter } = error;
    return { status, body: { error: message }, retryAfter };
  }
  const { statusCode } = (error ?? {}) as { statusCode?: unknown };
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
    const message = messages[statusCode] ?? (error as Error).message;
    return { status: statusCode, body: { error: message }, retryAfter: undefined };
  }
  if (error instanceof RangeError) {
    // A text that the model cannot take.
    return {
      status: 400,
      body: { error: `Cannot translate text: ${error.message}` },
      retryAfter: undefined,
    };
  }
  log(`Cannot translate text: ${told(error)}`);
  const code = error instanceof TorchError ? ` (${error.code})` : '';
  return { status: 500, body: { error: `Cannot translate text${code}` }, retryAfter: undefined };
}

function told(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof TorchError) return `${error.message} [${error.code}]`;
  return process.env['TORCHFORMER_DEBUG'] ? (error.stack ?? error.message) : error.message;
}
