/** A package registry on this machine: ours as packed, all others passed on from the usual one. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { npmScript, tool } from './tools.js';

export interface Registry {
  readonly url: string;
  stop(): void;
}

/** Starts verdaccio on 127.0.0.1 and publishes the tarballs to it; `folder` gets what it stores. */
export async function startRegistry(
  folder: string,
  tarballs: readonly string[],
): Promise<Registry> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/`;
  mkdirSync(folder, { recursive: true });
  const config = join(folder, 'config.json');
  writeFileSync(config, JSON.stringify(configuration(folder)));
  const child = spawn(
    process.execPath,
    [tool('verdaccio/bin/verdaccio'), '--config', config, '--listen', `127.0.0.1:${port}`],
    { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, NODE_ENV: 'test' } },
  );
  await untilItAnswers(url, child);
  for (const tarball of tarballs) publish(tarball, url, folder);
  return { url, stop: () => void child.kill() };
}

/** JSON is YAML as well. Whoever is on this machine may publish: it serves nobody else. */
function configuration(folder: string): object {
  const upstream = spawnSync(process.execPath, [npmScript(), 'config', 'get', 'registry'], {
    encoding: 'utf8',
  }).stdout.trim();
  const ours = { access: '$all', publish: '$all', unpublish: '$all' };
  return {
    storage: join(folder, 'storage'),
    auth: { htpasswd: { file: join(folder, 'htpasswd') } },
    uplinks: { upstream: { url: upstream, maxage: '1h', timeout: '60s' } },
    packages: {
      torchformer: ours,
      '@torchformer/*': ours,
      '**': { access: '$all', proxy: 'upstream' },
    },
    max_body_size: '500mb',
    web: { enable: false },
    log: { type: 'stdout', format: 'pretty', level: 'error' },
  };
}

function publish(tarball: string, registry: string, folder: string): void {
  const { host } = new URL(registry);
  const result = spawnSync(
    process.execPath,
    [
      ...[npmScript(), 'publish', tarball, '--registry', registry, '--tag', 'latest'],
      // npm wants to send some token; this registry looks at none.
      ...[`--//${host}/:_authToken=none`, '--cache', join(folder, 'npm-cache')],
    ],
    { encoding: 'utf8', cwd: folder },
  );
  if (result.status !== 0) throw new Error(`npm publish ${tarball}:\n${result.stderr}`);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function untilItAnswers(url: string, child: ChildProcess): Promise<void> {
  let output = '';
  child.stdout?.on('data', (text: Buffer) => (output += text.toString()));
  child.stderr?.on('data', (text: Buffer) => (output += text.toString()));
  for (let tries = 0; tries < 300; tries += 1) {
    if (child.exitCode !== null) break;
    try {
      await fetch(`${url}-/ping`);
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  child.kill();
  throw new Error(`the registry did not start:\n${output}`);
}
