import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { setUpLibtorch } from '../../../lib/runtime/setup/setup.js';
import { entryIn, library, version, wheelFiles, zipBytes } from '../libtorchFiles.js';
import {
  deadAddress,
  fileListener,
  runServed,
  serve,
  serveProxy,
  type ServedFile,
} from '../servers.js';
import { runCommand, temporaryFolder, type Changes } from '../support.js';

// Bytes that do not pack well, so that the wheel has a size worth breaking off.
const filling = Buffer.from(
  Array.from({ length: 200_000 }, (_, index) => (index * 2654435761) >>> 13),
);
const wheel = zipBytes({
  ...wheelFiles(version),
  'torch/lib/libtorch_cpu.so': Buffer.concat([library('cpu'), filling]),
});
const digest = createHash('sha256').update(wheel).digest('hex');
const half = Math.floor(wheel.length / 2);

const direct = { HTTP_PROXY: null, HTTPS_PROXY: null, http_proxy: null, https_proxy: null };

/** A server with the wheel, and set-up from it. */
async function serving(changes: Partial<ServedFile> = {}) {
  const requests: string[] = [];
  const cache = join(temporaryFolder(), 'cache');
  const file: ServedFile = { content: wheel, etag: '"1"', ...changes };
  const address = await serve(fileListener(file, requests));
  const url = `${address}/torch-${version}.whl`;
  const setup = (args: readonly string[] = ['--sha256', digest], variables: Changes = {}) =>
    runServed(['setup', '--from', url, ...args], {
      TORCHFORMER_CACHE: cache,
      // Nothing that comes from a URL needs Python.
      TORCHFORMER_PYTHON: join(cache, 'none'),
      ...direct,
      ...variables,
    });
  return { file, requests, cache, url, setup };
}

function expectSetUp(cache: string): void {
  expect(readdirSync(cache)).toEqual([`libtorch-${version}-cpu`]);
  const library = readFileSync(join(entryIn(cache), 'torch/lib/libtorch_cpu.so'));
  expect(library.subarray(-filling.length).equals(filling)).toBe(true);
}

describe('torchformer setup --from <url>', () => {
  it('takes the file with the right checksum, and tells how far it is', async () => {
    const { cache, setup } = await serving();
    const { status, errors } = await setup();
    expect(status, errors).toBe(0);
    expect(errors).toContain('100 % of');
    expectSetUp(cache);
  });

  it('takes the checksum from the end of the URL as well', async () => {
    const { cache, url } = await serving();
    const { status } = await runServed(['setup', '--from', `${url}#sha256=${digest}`], {
      TORCHFORMER_CACHE: cache,
      ...direct,
    });
    expect(status).toBe(0);
    expectSetUp(cache);
  });

  it('wants a checksum, before anything is fetched', async () => {
    const { requests, setup } = await serving();
    const { status, errors } = await setup([]);
    expect(status).toBe(1);
    expect(errors).toContain('--sha256');
    expect(errors).toContain('#sha256=');
    expect(requests).toEqual([]);
  });

  it('refuses a file with another checksum and keeps nothing of it', async () => {
    const { cache, setup } = await serving();
    const { status, errors } = await setup(['--sha256', '0'.repeat(64)]);
    expect(status).toBe(1);
    expect(errors).toContain(`has SHA-256 ${digest}, expected ${'0'.repeat(64)}`);
    expect(errors).toContain('download it again');
    expect(existsSync(entryIn(cache))).toBe(false);
    expect(readdirSync(cache)).toEqual([]);
  });

  it.each([
    ['ftp://me:secret@host/torch.whl', 'got one with ftp://; download the file first'],
    ['file:///torch.whl', 'got one with file://; pass only the path'],
    ['https://', 'got an incomplete URL'],
  ])('does not take "%s" for a URL', (source, text) => {
    const cache = join(temporaryFolder(), 'cache');
    const { status, errors } = runCommand(['setup', '--from', source], {
      TORCHFORMER_CACHE: cache,
    });
    expect(status).toBe(1);
    expect(errors).toContain('--from must be a folder, a file, or an http:// or https:// URL');
    expect(errors).toContain(text);
    expect(errors).not.toContain('secret');
    expect(existsSync(cache)).toBe(false);
  });

  it('does not take an empty source, by its flag or its option', async () => {
    const { status, errors } = runCommand(['setup', '--from', '']);
    expect(status).toBe(1);
    expect(errors).toContain("'--from <source>' argument '' is invalid. It must not be empty.");
    await expect(setUpLibtorch({ from: '' })).rejects.toThrow(
      'setUpLibtorch: from must be a folder, a file, or an http:// or https:// URL, got an empty string',
    );
  });

  it('goes on by itself when the connection breaks', async () => {
    const { requests, cache, setup } = await serving({ breakAfter: [half] });
    const { status, errors } = await setup();
    expect(status, errors).toBe(0);
    expect(requests).toEqual(['all', `bytes=${half}-`]);
    expect(errors).toContain('trying again');
    expectSetUp(cache);
  });

  it('goes on the next time where it was broken off', async () => {
    // The tries after the first one give no byte.
    const { requests, cache, setup } = await serving({ breakAfter: [half, 0, 0, 0] });
    const first = await setup();
    expect(first.status).toBe(1);
    expect(first.errors).toContain('the same command continues from there');
    expect(requests).toEqual(['all', ...Array<string>(3).fill(`bytes=${half}-`)]);
    const listed = runCommand(['setup', '--list'], { TORCHFORMER_CACHE: cache });
    expect(listed.output).toMatch(/^unfinished .*\.part$/m);

    const second = await setup();
    expect(second).toMatchObject({ status: 0 });
    expect(second.errors).toContain('continuing after');
    expect(requests.at(-1)).toBe(`bytes=${half}-`);
    expectSetUp(cache);
  });

  it('starts anew where the server can give no parts', async () => {
    const { requests, cache, setup } = await serving({ ranges: false, breakAfter: [half] });
    expect(await setup()).toMatchObject({ status: 0 });
    expect(requests).toHaveLength(2);
    expectSetUp(cache);
  });

  it('starts anew when the file on the server is another by now', async () => {
    const old = { content: Buffer.alloc(wheel.length), breakAfter: [half, 0, 0, 0] };
    const { file, requests, cache, setup } = await serving(old);
    expect((await setup()).status).toBe(1);
    Object.assign(file, { content: wheel, etag: '"2"' });
    expect(await setup()).toMatchObject({ status: 0 });
    expect(requests.at(-1)).toBe(`bytes=${half}-`);
    expectSetUp(cache);
  });

  it('tells what a server answers instead', async () => {
    const cache = join(temporaryFolder(), 'cache');
    const address = await serve((_, response) => response.writeHead(404, 'Not Found').end());
    const url = `${address}/torch.whl`;
    const { status, errors } = await runServed(['setup', '--from', `${url}#sha256=${digest}`], {
      TORCHFORMER_CACHE: cache,
      ...direct,
    });
    expect(status).toBe(1);
    expect(errors).toContain(`${url} cannot be fetched: HTTP 404 Not Found`);
  });

  it('refuses what the disk has no room for before it comes', async () => {
    const cache = join(temporaryFolder(), 'cache');
    const address = await serve((_, response) => {
      response.writeHead(200, { 'content-length': 1e16 });
      response.flushHeaders();
    });
    const url = `${address}/torch.whl#sha256=${digest}`;
    const { status, errors } = await runServed(['setup', '--from', url], {
      TORCHFORMER_CACHE: cache,
      ...direct,
    });
    expect(status).toBe(1);
    expect(errors).toMatch(/needs 10000000\.0 GB, but the disk of .*downloads has .* free/);
    expect(errors).toContain('TORCHFORMER_CACHE');
  });
});

describe('a disk that gets full during a download', () => {
  // Needs a file system of its own, which root can make where containers allow it.
  const mount = ['-m', 'sh', '-c'];
  const canMount =
    spawnSync('unshare', [...mount, 'mount -t tmpfs x /mnt'], { stdio: 'ignore' }).status === 0;

  it.runIf(canMount)('is told, with what is free and the way out', async () => {
    const disk = temporaryFolder();
    // Without a length nobody can tell before.
    const address = await serve((_, response) => {
      response.write(Buffer.alloc(1e6));
      response.end(Buffer.alloc(1e6));
    });
    const script = `mount -t tmpfs -o size=300k x '${disk}' && exec "$0" "$@"`;
    const url = `${address}/torch.whl#sha256=${digest}`;
    const { status, errors } = await runServed(
      ['setup', '--from', url],
      {
        TORCHFORMER_CACHE: join(disk, 'cache'),
        ...direct,
      },
      ['unshare', ...mount, script],
    );
    expect(status).toBe(1);
    expect(errors).toMatch(/the disk is full \(.* free\) at .*downloads; free some space/);
  });
});

describe('torchformer setup behind a proxy', () => {
  it.each(['HTTP_PROXY', 'http_proxy'])('goes through the one in %s', async (variable) => {
    const seen: string[] = [];
    const proxy = await serveProxy(seen);
    const { cache, url, setup } = await serving();
    const { status, errors } = await setup(undefined, { [variable]: proxy, NO_PROXY: null });
    expect(status, errors).toBe(0);
    // The client may ask the proxy for the address or for a tunnel to it.
    expect(seen.some((asked) => asked === url || asked === `CONNECT ${new URL(url).host}`)).toBe(
      true,
    );
    expectSetUp(cache);
  });

  it('goes past it to the hosts in NO_PROXY', async () => {
    const seen: string[] = [];
    const proxy = await serveProxy(seen);
    const { cache, setup } = await serving();
    const { status } = await setup(undefined, { HTTP_PROXY: proxy, NO_PROXY: '127.0.0.1' });
    expect(status).toBe(0);
    expect(seen).toEqual([]);
    expectSetUp(cache);
  });

  it.each([
    ['HTTP_PROXY', 'proxy:3128'],
    ['https_proxy', 'me:secret@nowhere'],
    ['HTTPS_PROXY', 'http://'],
  ])('names %s when it is "%s"', async (variable, value) => {
    const { cache, requests, setup } = await serving();
    const { status, errors } = await setup(undefined, { [variable]: value, NO_PROXY: null });
    expect(status).toBe(1);
    expect(errors).toContain(`${variable} must be an http:// or https:// URL, got "`);
    expect(errors).toContain('correct it or unset it [ERR_NATIVE_LOAD]');
    expect(errors).not.toContain('secret');
    expect(requests).toEqual([]);
    expect(readdirSync(cache)).toEqual([]);
  });

  it('names the address when the proxy does not answer', async () => {
    const { url, requests, setup } = await serving();
    const { status, errors } = await setup(undefined, {
      HTTP_PROXY: await deadAddress(),
      NO_PROXY: null,
    });
    expect(status).toBe(1);
    expect(errors).toContain(`${url} cannot be fetched: `);
    expect(errors).toContain('ECONNREFUSED');
    expect(requests).toEqual([]);
  });
});
