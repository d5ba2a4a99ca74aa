/**
 * Finds wheels on a Python package index without Python, through the simple API as JSON or HTML.
 * Only the libraries in a wheel are used, so the Python version it is for does not matter.
 */
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { compareVersions } from '../native/elf.js';
import { TorchError } from '../errors.js';
import { connectionFault, isUrl, plainUrl, request } from './http.js';
import { type Requirement, satisfies } from './requirement.js';
import { ownPlatform } from '../native/platform.js';

/** A wheel on an index. */
export interface WheelFile {
  readonly url: string;
  readonly filename: string;
  readonly version: string;
  /** Of the whole file, in hexadecimal digits; undefined if the index does not provide it. */
  readonly sha256: string | undefined;
}

/**
 * The index to use: `PIP_INDEX_URL`, else the `index-url` of pip's configuration; null if neither
 * is set.
 */
export function configuredIndex(environment: NodeJS.ProcessEnv = process.env): string | null {
  const variable = environment['PIP_INDEX_URL'];
  if (variable) return variable;
  for (const file of pipConfigurations(environment)) {
    if (!existsSync(file)) continue;
    const [, url] = /^\s*index[-_]url\s*[=:]\s*(\S+)/m.exec(readFileSync(file, 'utf8')) ?? [];
    if (url !== undefined) return url;
  }
  return null;
}

function pipConfigurations(environment: NodeJS.ProcessEnv): readonly string[] {
  const own = environment['PIP_CONFIG_FILE'];
  if (own) return [own];
  let home: string;
  try {
    home = homedir();
  } catch {
    return ['/etc/pip.conf'];
  }
  const configuration = environment['XDG_CONFIG_HOME'] || join(home, '.config');
  return [
    join(configuration, 'pip/pip.conf'),
    join(home, '.pip/pip.conf'),
    ...(environment['APPDATA'] ? [join(environment['APPDATA'], 'pip/pip.ini')] : []),
    '/etc/pip.conf',
  ];
}

/**
 * The torch wheel for this machine. For the CPU this is the CPU-only build (`2.13.0+cpu`) if the
 * index has one, else the build without a suffix, which on x64 Linux is the CUDA build.
 *
 * @throws TorchError ERR_NATIVE_LOAD if there is none
 */
export async function findTorchWheel(
  index: string,
  version: string,
  variant: 'cpu' | 'cuda',
): Promise<WheelFile> {
  const all = await wheelsOf(index, 'torch');
  const fitting = all.filter((wheel) => wheel.version.split('+', 1)[0] === version);
  const local = variant === 'cpu' ? '+cpu' : '+cu';
  const chosen =
    fitting.find((wheel) => wheel.version.includes(local)) ??
    fitting.find((wheel) => !wheel.version.includes('+'));
  if (chosen === undefined) throw notThere(index, `torch ${version}`, all);
  return chosen;
}

/** The newest wheel for this machine that satisfies `requirement`. @throws TorchError */
export async function findWheel(index: string, requirement: Requirement): Promise<WheelFile> {
  const all = await wheelsOf(index, requirement.name);
  const [newest] = all
    .filter(({ version }) => satisfies(version, requirement))
    .sort((a, b) => compareVersions(b.version, a.version));
  if (newest === undefined) throw notThere(index, requirement.text, all);
  return newest;
}

function notThere(index: string, what: string, all: readonly WheelFile[]): TorchError {
  const versions = [...new Set(all.map(({ version }) => version))];
  const there =
    versions.length === 0
      ? 'it has no wheel of that name for this machine'
      : `it has the versions ${versions.slice(-8).join(', ')}`;
  return new TorchError(
    'ERR_NATIVE_LOAD',
    `the index ${plainUrl(index)} has no wheel of ${what} for ${ownPlatform.title}: ${there}`,
  );
}

// ---- the simple API -----------------------------------------------------------------------------

const jsonType = 'application/vnd.pypi.simple.v1+json';

interface JsonFile {
  filename: string;
  url: string;
  hashes?: { sha256?: string };
  yanked?: boolean | string;
}

/** The wheels of a project that this machine can use. */
async function wheelsOf(index: string, name: string): Promise<readonly WheelFile[]> {
  if (!isUrl(index)) {
    throw new TorchError(
      'ERR_NATIVE_LOAD',
      `the package index must be an http:// or https:// URL, got ${index}; ` +
        'other kinds of index need Python with pip',
    );
  }
  const project = name.toLowerCase().replace(/[-_.]+/g, '-');
  const url = `${index.replace(/\/+$/, '')}/${project}/`;
  const accept = `${jsonType}, text/html;q=0.1`;
  const { base, json, body } = await request(url, { accept }, async (response) => {
    if (!response.ok) throw connectionFault(url, new Error(`HTTP ${response.status}`));
    const type = response.headers.get('content-type') ?? '';
    try {
      return { base: response.url, json: /\bjson\b/.test(type), body: await response.text() };
    } catch (error) {
      throw connectionFault(url, error);
    }
  });
  // Files on the host of the index need the same user name and password as the index.
  const { username, password, host } = new URL(index);
  const absolute = (relative: string): string => {
    const target = new URL(relative, base);
    if (target.host === host && target.username === '') {
      target.username = username;
      target.password = password;
    }
    return target.href;
  };
  const files = json ? filesOfJson(body, url) : filesOfHtml(body);
  return files.flatMap(({ filename, url: address, hashes }) => {
    const version = usableVersion(filename);
    if (version === null) return [];
    return [{ url: absolute(address), filename, version, sha256: hashes?.sha256 }];
  });
}

function filesOfJson(body: string, url: string): readonly JsonFile[] {
  try {
    const { files } = JSON.parse(body) as { files: readonly JsonFile[] };
    return files.filter(({ yanked }) => yanked === undefined || yanked === false);
  } catch (error) {
    throw connectionFault(url, error);
  }
}

function filesOfHtml(body: string): readonly JsonFile[] {
  const links = body.matchAll(/<a\s([^>]*)>/gi);
  return [...links].flatMap(([, attributes = '']) => {
    const [, address] = /\bhref\s*=\s*["']([^"']+)["']/i.exec(attributes) ?? [];
    if (address === undefined || /\bdata-yanked\b/i.test(attributes)) return [];
    const [path = '', fragment = ''] = address.replaceAll('&amp;', '&').split('#');
    const filename = decodeURIComponent(path.split('?', 1)[0]?.split('/').at(-1) ?? '');
    const [, sha256] = /\bsha256=([0-9a-f]{64})/i.exec(fragment) ?? [];
    return [{ filename, url: path, hashes: sha256 === undefined ? {} : { sha256 } }];
  });
}

// ---- which wheels fit ---------------------------------------------------------------------------

/** The version of a wheel with libraries for this machine; null for other files. */
function usableVersion(filename: string): string | null {
  const match = /^[^-]+-([^-]+)(?:-\d[^-]*)?-[^-]+-[^-]+-([^-]+)\.whl$/.exec(filename);
  if (match?.[1] === undefined || match[2] === undefined) return null;
  const { wheelTags, wheelMachine } = ownPlatform.system;
  const fits = match[2]
    .split('.')
    .some((tag) => tag === 'any' || (wheelTags.test(tag) && tag.endsWith(`_${wheelMachine}`)));
  return fits ? match[1] : null;
}
