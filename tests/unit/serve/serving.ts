/** A server on a free port with a translator that needs no model: it turns words to upper case. */
import { connect } from 'node:net';
import { createServer, type ServedTranslator, type ServeOptions } from 'torchformer/serve';
import { onTestFinished } from 'vitest';

/** A translator whose work can be watched and held. */
export interface Double extends ServedTranslator {
  /** The texts of each call, in order. */
  readonly calls: (readonly string[])[];
  disposed: number;
}

export interface DoubleOptions {
  /** Waited for before each translation, and before each word of a stream. */
  readonly gate?: () => Promise<void>;
}

/**
 * `ein Haus` → `EIN HAUS`, with the alternatives `ein haus 1`, `ein haus 2` and an attention of each
 * word to its own.
 */
export function upperCase({ gate = () => Promise.resolve() }: DoubleOptions = {}): Double {
  const words = (text: string) => text.split(' ');
  return {
    calls: [],
    disposed: 0,
    split: (lines) => Promise.resolve(lines.map((line) => [line])),
    async translate(texts, { signal }) {
      this.calls.push(texts);
      await untilAborted(gate(), signal);
      return texts.map((text) => text.toUpperCase());
    },
    async detailed(texts, { hypotheses, attention, signal }) {
      this.calls.push(texts);
      await untilAborted(gate(), signal);
      return texts.map((text) => ({
        hypotheses: Array.from({ length: hypotheses }, (_, rank) => ({
          text: rank === 0 ? text.toUpperCase() : `${text.toLowerCase()} ${rank}`,
          score: rank === 0 ? 0 : -rank,
          tokens: words(text).map((word) => ({ text: word.toUpperCase(), score: -0.5 })),
        })),
        attention: attention
          ? {
              sourceTokens: words(text),
              targetTokens: words(text.toUpperCase()),
              weights: words(text).map((_, row) =>
                words(text).map((_word, column) => (row === column ? 1 : 0)),
              ),
              sourceWords: words(text).map((word, index) => ({ text: word, tokens: [index] })),
              targetWords: words(text.toUpperCase()).map((word, index) => ({
                text: word,
                tokens: [index],
              })),
            }
          : null,
      }));
    },
    async *stream(text, { signal }) {
      this.calls.push([text]);
      for (const piece of text.toUpperCase().split(/(?<= )/)) {
        await untilAborted(gate(), signal);
        yield piece;
      }
    },
    dispose() {
      this.disposed++;
    },
  };
}

function untilAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true });
    work.then(resolve, reject);
  });
}

/** A promise that a test resolves itself. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

export interface Serving {
  readonly address: string;
  readonly port: number;
  /** What the server has logged. */
  readonly log: string[];
  readonly get: (path: string) => Promise<Answer>;
  /** Sends an object as JSON, parameters as a form, or a text as it is. */
  readonly post: (
    path: string,
    body: object | string,
    headers?: Record<string, string>,
  ) => Promise<Answer>;
  readonly close: (options?: { gracePeriod?: number }) => Promise<void>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON. */
  readonly json: any; // eslint-disable-line @typescript-eslint/no-explicit-any -- any response
}

/** A server until the test ends. Default: one model, de-en, that is {@link upperCase}. */
export async function serving(options: Partial<ServeOptions> = {}): Promise<Serving> {
  const log: string[] = [];
  const server = await createServer({
    models: { 'de-en': 'models/de-en' },
    load: () => Promise.resolve(upperCase()),
    log: (line) => log.push(line),
    ...options,
  });
  onTestFinished(() => server.close({ gracePeriod: 0.1 }));
  const address = await server.listen({ port: 0 });
  const send = async (path: string, init: RequestInit = {}): Promise<Answer> => {
    const response = await fetch(address + path, init);
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: isJson ? JSON.parse(text) : undefined,
    };
  };
  return {
    address,
    port: Number(new URL(address).port),
    log,
    get: (path) => send(path),
    post(path, body, headers) {
      if (body instanceof URLSearchParams || body instanceof FormData) {
        return send(path, { method: 'POST', body, ...(headers ? { headers } : {}) });
      }
      return send(path, {
        method: 'POST',
        body: typeof body === 'string' ? body : JSON.stringify(body),
        headers: { 'content-type': 'application/json', ...headers },
      });
    },
    close: (closing) => server.close(closing),
  };
}

/** A question from German to English. */
export function german(q: unknown, more: object = {}): object {
  return { q, source: 'de', target: 'en', ...more };
}

/** Sends bytes on a connection of its own; the bytes that came back when the server has closed it. */
export function raw(port: number, bytes: string, { end = false } = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    let received = '';
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => (received += text));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNRESET' || error.code === 'EPIPE') resolve(received);
      else reject(error);
    });
    socket.on('end', () => {
      socket.end();
      resolve(received);
    });
    socket.write(bytes);
    if (end) socket.end();
  });
}
