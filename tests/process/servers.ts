/** Servers on this machine that set-up fetches from, and commands that run while they answer. */
import { spawn } from 'node:child_process';
import {
  createServer,
  request as ask,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { environment, root, type Changes, type Outcome } from './support.js';

/**
 * Runs the command line while this process goes on serving.
 *
 * @param around a command that runs the one behind it
 */
export async function runServed(
  args: readonly string[],
  changes: Changes,
  around: readonly string[] = [],
): Promise<Outcome> {
  const whole = [...around, process.execPath, join(root, 'bin/torchformer.js'), ...args];
  const [program = '', ...rest] = whole;
  const child = spawn(program, rest, {
    env: environment(changes),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const status = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { status, output, errors };
}

/** Starts a server for the rest of the test; returns its address. */
export async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise((resolve) => server.once('listening', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** One file, and how it is given out. */
export interface ServedFile {
  content: Buffer;
  etag?: string;
  /** Whether a part can be asked for. Default true. */
  ranges?: boolean;
  /** Breaks the connection after so many bytes of the answers to the first requests. */
  breakAfter?: readonly number[];
}

/** Gives out a file, as it is at the time of the request; `requests` gets the `Range` of each request, or `all`. */
export function fileListener(file: ServedFile, requests: string[]): RequestListener {
  return (message: IncomingMessage, response: ServerResponse) => {
    const { content, etag, ranges = true, breakAfter = [] } = file;
    const limit = breakAfter[requests.length];
    const range = /^bytes=(\d+)-$/.exec(message.headers.range ?? '');
    requests.push(message.headers.range ?? 'all');
    const unchanged =
      message.headers['if-range'] === undefined || message.headers['if-range'] === etag;
    const start = ranges && range !== null && unchanged ? Number(range[1]) : 0;
    const body = content.subarray(start);
    response.writeHead(start > 0 ? 206 : 200, {
      'content-length': body.length,
      ...(etag === undefined ? {} : { etag }),
      ...(start > 0
        ? { 'content-range': `bytes ${start}-${content.length - 1}/${content.length}` }
        : {}),
    });
    if (limit === undefined) return void response.end(body);
    // The part has to arrive before the connection breaks.
    response.write(body.subarray(0, limit), () => setTimeout(() => response.destroy(), 200));
    response.flushHeaders();
  };
}

/** A proxy that passes requests on; `seen` gets what it was asked for. */
export async function serveProxy(seen: string[]): Promise<string> {
  const server = createServer((message, response) => {
    seen.push(message.url ?? '');
    const { method, headers } = message;
    const passed = ask(message.url ?? '', { method: method ?? 'GET', headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    passed.on('error', () => response.destroy());
    message.pipe(passed);
  });
  server.on('connect', (message, client, head) => {
    seen.push(`CONNECT ${message.url}`);
    const [host, port] = (message.url ?? '').split(':');
    const target = connect(Number(port), host, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      target.write(head);
      target.pipe(client);
      client.pipe(target);
    });
    target.on('error', () => client.destroy());
    client.on('error', () => target.destroy());
  });
  server.listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise((resolve) => server.once('listening', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** An address of this machine where nobody listens. */
export async function deadAddress(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}
