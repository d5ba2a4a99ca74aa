/** Errors that a client is told. */

/** An error with the HTTP status and the text of the response: `{"error": message}`. */
export class RequestError extends Error {
  /** The HTTP status, from 400 to 504. */
  readonly status: number;
  /** Seconds after which to try again, for the header `Retry-After`; undefined: no such header. */
  readonly retryAfter: number | undefined;

  /**
   * @param status the HTTP status, from 400 to 504
   * @param message what is wrong with the request, for the client
   */
  constructor(status: number, message: string, options: RequestErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'RequestError';
    this.status = status;
    this.retryAfter = options.retryAfter;
  }
}

interface RequestErrorOptions {
  /** Seconds after which to try again. */
  readonly retryAfter?: number;
  /** What the log shows, and the client does not see. */
  readonly cause?: unknown;
}

/** The error of a request without a parameter, in the words of LibreTranslate. */
export function missingParameter(name: string): RequestError {
  return new RequestError(400, `Invalid request: missing ${name} parameter`);
}
