/** HTTP for set-up: the proxy variables hold, names and passwords in a URL go where they belong. */
import type { Response } from 'undici';
import { TorchError } from '../errors.js';

/** Whether it is the address of something to download. */
export function isUrl(text: string): boolean {
  return /^https?:\/\//i.test(text);
}

/** The URL without what is secret or no part of the address, for messages and names of files. */
export function plainUrl(url: string | URL): string {
  const plain = new URL(url);
  plain.username = '';
  plain.password = '';
  plain.hash = '';
  return plain.href;
}

/**
 * Asks for `url`, with its name and password if it has them, through the proxy that HTTPS_PROXY,
 * HTTP_PROXY and NO_PROXY tell. Redirects are followed.
 *
 * @param action gets the answer, whatever its status; the connection ends with it
 * @throws TorchError ERR_NATIVE_LOAD when there is no answer; its cause is the client's error
 */
export async function request<T>(
  url: string,
  headers: Readonly<Record<string, string>>,
  action: (response: Response) => Promise<T>,
): Promise<T> {
  // Only set-up needs it: not at every import of the package. Node's own fetch has no proxies.
  const { EnvHttpProxyAgent, fetch } = await import('undici');
  const { username, password } = new URL(url);
  const all: Record<string, string> = { ...headers };
  if (username !== '' || password !== '') {
    const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    all['authorization'] = `Basic ${Buffer.from(pair).toString('base64')}`;
  }
  checkProxies();
  const dispatcher = new EnvHttpProxyAgent({ bodyTimeout: 60_000 });
  try {
    let response: Response;
    try {
      response = await fetch(plainUrl(url), { headers: all, dispatcher });
    } catch (error) {
      throw connectionFault(url, error);
    }
    return await action(response);
  } finally {
    // Not `close`, which would wait for a body that nobody reads.
    await dispatcher.destroy();
  }
}

/**
 * The client would tell of an invalid URL, without a word about which.
 *
 * @throws TorchError ERR_NATIVE_LOAD naming the variable
 */
function checkProxies(environment: NodeJS.ProcessEnv = process.env): void {
  // The order in which the client asks them.
  const pairs = [
    ['http_proxy', 'HTTP_PROXY'],
    ['https_proxy', 'HTTPS_PROXY'],
  ];
  for (const names of pairs) {
    const name = names.find((one) => environment[one] !== undefined);
    const value = name === undefined ? '' : (environment[name] ?? '');
    if (value === '' || (isUrl(value) && URL.canParse(value))) continue;
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      `${name} must be an http:// or https:// URL, got "${value.replace(/^.*@/, '…@')}"; ` +
        'correct it or unset it',
    );
  }
}

/** The error for an address that does not answer, or stops in the middle. */
export function connectionFault(url: string, error: unknown): TorchError {
  const reasons: string[] = [];
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    // Several addresses of one host, each with its own reason.
    if (at instanceof AggregateError) at = at.errors[0];
    if (at instanceof Error && at.message !== '' && at.message !== 'fetch failed') {
      reasons.push(at.message);
    }
    if (!(at instanceof Error)) break;
  }
  const certificate = /certificate/i.test(reasons.join())
    ? ' If a proxy signs with a certificate of its own, NODE_EXTRA_CA_CERTS names the file with it.'
    : '';
  return new TorchError(
    'ERR_NATIVE_LOAD',
    `${plainUrl(url)} cannot be fetched: ${reasons.join(': ') || String(error)}.${certificate}`,
    { cause: error },
  );
}
