/** HTTP for setup, with the proxy variables and with user names and passwords in URLs. */
import type { Response } from 'undici';
import { TorchError } from '../errors.js';

/** Whether `text` is an http:// or https:// URL. */
export function isUrl(text: string): boolean {
  return /^https?:\/\//i.test(text);
}

/** The URL without user name, password and fragment, for messages and file names. */
export function plainUrl(url: string | URL): string {
  const plain = new URL(url);
  plain.username = '';
  plain.password = '';
  plain.hash = '';
  return plain.href;
}

/**
 * Requests `url`, with its user name and password if it has them, through the proxy of HTTPS_PROXY,
 * HTTP_PROXY and NO_PROXY. Redirects are followed.
 *
 * @param action called with the response, whatever its status; the connection is closed afterwards
 * @throws TorchError ERR_NATIVE_LOAD if there is no response; its cause is the client's error
 */
export async function request<T>(
  url: string,
  headers: Readonly<Record<string, string>>,
  action: (response: Response) => Promise<T>,
): Promise<T> {
  // Only setup needs it, so it is not loaded with the package. Node's fetch supports no proxies.
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
    // `close` would wait for a body that is not read.
    await dispatcher.destroy();
  }
}

/**
 * Checks the proxy variables, because the client's error does not name the invalid URL.
 *
 * @throws TorchError ERR_NATIVE_LOAD naming the variable
 */
function checkProxies(environment: NodeJS.ProcessEnv = process.env): void {
  // In the client's order of precedence.
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

/** The error for a server that does not respond, or stops in the middle. */
export function connectionFault(url: string, error: unknown): TorchError {
  const reasons: string[] = [];
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    // One error for each address of a host.
    if (at instanceof AggregateError) at = at.errors[0];
    if (at instanceof Error && at.message !== '' && at.message !== 'fetch failed') {
      reasons.push(at.message);
    }
    if (!(at instanceof Error)) break;
  }
  const certificate = /certificate/i.test(reasons.join())
    ? ' If a proxy uses its own certificate, set NODE_EXTRA_CA_CERTS to the file that contains it.'
    : '';
  return new TorchError(
    'ERR_NATIVE_LOAD',
    `${plainUrl(url)} cannot be fetched: ${reasons.join(': ') || String(error)}.${certificate}`,
    { cause: error },
  );
}
