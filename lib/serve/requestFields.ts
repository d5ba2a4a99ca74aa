/** The parameters of a request, from a JSON body, a form, or the address. */
import { RequestError } from './requestError.js';

/** Parameters by name. */
export type Fields = Readonly<Record<string, unknown>>;

/**
 * The members of a JSON object.
 * @throws RequestError 400
 */
export function jsonFields(body: Buffer): Fields {
  const text = utf8(body, 'Invalid JSON format: the body is not UTF-8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new RequestError(400, 'Invalid JSON format', { cause: error });
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new RequestError(400, 'Invalid JSON format: the body must be an object');
  }
  return value as Fields;
}

/**
 * The fields of a form as browsers and `curl -d` send it. A field that occurs several times is an array.
 * @throws RequestError 400
 */
export function formFields(body: Buffer): Fields {
  return paramFields(new URLSearchParams(utf8(body, 'The form is not UTF-8')));
}

/**
 * The fields of a `multipart/form-data` body.
 * @throws RequestError 400
 */
export async function multipartFields(body: Buffer, contentType: string): Promise<Fields> {
  const response = new Response(new Uint8Array(body), { headers: { 'content-type': contentType } });
  let data: FormData;
  try {
    data = await response.formData();
  } catch (error) {
    throw new RequestError(400, 'The form cannot be read', { cause: error });
  }
  const entries: [string, string][] = [];
  for (const [name, value] of data) {
    if (typeof value !== 'string') {
      throw new RequestError(400, `The field ${name} is a file, not a text`);
    }
    entries.push([name, value]);
  }
  return paramFields(entries);
}

/** The parameters of an address: `?q=…&source=de`. */
export function queryFields(url: string): Fields {
  const start = url.indexOf('?');
  return start < 0 ? {} : paramFields(new URLSearchParams(url.slice(start)));
}

function paramFields(entries: Iterable<[string, string]>): Fields {
  const values = new Map<string, string | string[]>();
  for (const [name, sent] of entries) {
    // Forms have the line ends of e-mail.
    const value = sent.replace(/\r\n?/g, '\n');
    const earlier = values.get(name);
    if (earlier === undefined) values.set(name, value);
    else values.set(name, [earlier, value].flat());
  }
  return Object.fromEntries(values);
}

function utf8(body: Buffer, fault: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch (error) {
    throw new RequestError(400, fault, { cause: error });
  }
}
