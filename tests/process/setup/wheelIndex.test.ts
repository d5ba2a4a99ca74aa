import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { entryIn, library, version, wheelFiles, zipBytes, type Files } from '../libtorchFiles.js';
import { deadAddress, runServed, serve } from '../servers.js';
import { root, runCommand, runScript, temporaryFolder, writeFiles } from '../support.js';

const machine = process.arch === 'arm64' ? 'aarch64' : 'x86_64';
const tags = `cp312-cp312-manylinux_2_28_${machine}`;
const direct = { HTTP_PROXY: null, HTTPS_PROXY: null, http_proxy: null, https_proxy: null };

/** Wheels by their names; each index entry has the checksum of its wheel, or the one told here. */
type Wheels = Readonly<Record<string, Files>>;

/** Answers like a package index: as JSON, or as HTML for a server that knows nothing else. */
function indexListener(wheels: Wheels, kind: 'json' | 'html', asked: string[]): RequestListener {
  const contents = new Map(
    Object.entries(wheels).map(([name, files]) => [name, zipBytes(files)] as const),
  );
  return (message, response) => {
    const url = new URL(message.url ?? '', 'http://index');
    asked.push(`${url.pathname} ${message.headers.authorization ?? ''}`.trim());
    const [, project] = /^\/simple\/([^/]+)\/$/.exec(url.pathname) ?? [];
    if (project === undefined) {
      const content = contents.get(decodeURIComponent(url.pathname.slice('/files/'.length)));
      if (content === undefined) response.writeHead(404);
      return void response.end(content);
    }
    const files = [...contents]
      .filter(([name]) => name.split('-')[0]?.replaceAll('_', '-') === project)
      .map(([name, content]) => ({
        filename: name,
        url: `../../files/${encodeURIComponent(name)}`,
        hashes: { sha256: createHash('sha256').update(content).digest('hex') },
      }));
    if (files.length === 0) return void response.writeHead(404).end();
    if (kind === 'json') {
      response.setHeader('content-type', 'application/vnd.pypi.simple.v1+json');
      return void response.end(JSON.stringify({ files }));
    }
    response.setHeader('content-type', 'text/html');
    const links = files.map(
      ({ filename, url, hashes }) => `<a href="${url}#sha256=${hashes.sha256}">${filename}</a><br>`,
    );
    response.end(`<!DOCTYPE html><html><body>${links.join('\n')}</body></html>`);
  };
}

/** Wheels of torch as an index has them, beside others that must not be taken. */
const torchWheels: Wheels = {
  [`torch-2.12.0+cpu-${tags}.whl`]: wheelFiles('2.12.0+cpu'),
  [`torch-${version}+cpu-cp312-cp312-macosx_11_0_arm64.whl`]: { 'torch/lib/libc10.dylib': '' },
  [`torch-${version}+cpu-${tags}.whl`]: wheelFiles(`${version}+cpu`),
  [`torch-${version}-${tags}.whl`]: wheelFiles(version),
};

/** No Python, and an index. */
async function withIndex(wheels: Wheels, kind: 'json' | 'html' = 'json') {
  const asked: string[] = [];
  const address = await serve(indexListener(wheels, kind, asked));
  const cache = join(temporaryFolder(), 'cache');
  const changes = {
    TORCHFORMER_CACHE: cache,
    TORCHFORMER_PYTHON: join(cache, 'none'),
    PIP_INDEX_URL: null,
    PIP_CONFIG_FILE: '/dev/null',
    ...direct,
  };
  return { asked, cache, changes, index: `${address}/simple` };
}

describe('torchformer setup without Python', () => {
  it.each(['json', 'html'] as const)(
    'fetches the wheel from an index that speaks %s',
    async (kind) => {
      const { asked, cache, changes, index } = await withIndex(torchWheels, kind);
      const { status, errors } = await runServed(['setup', '--index-url', index], changes);
      expect(status, errors).toBe(0);
      expect(asked).toEqual([
        '/simple/torch/',
        `/files/${encodeURIComponent(`torch-${version}+cpu-${tags}.whl`)}`,
      ]);
      expect(readdirSync(join(entryIn(cache), 'torch/lib')).sort()).toEqual([
        'libc10.so',
        'libgomp.so.1',
        'libtorch_cpu.so',
      ]);
      expect(readdirSync(cache)).toEqual([`libtorch-${version}-cpu`]);
    },
  );

  it('takes the address of the index from PIP_INDEX_URL, with its name and password', async () => {
    const { asked, changes, index } = await withIndex(torchWheels);
    const secret = index.replace('http://', 'http://me:pass%20word@');
    const { status, errors } = await runServed(['setup'], { ...changes, PIP_INDEX_URL: secret });
    expect(status, errors).toBe(0);
    const basic = `Basic ${Buffer.from('me:pass word').toString('base64')}`;
    expect(asked.map((line) => line.endsWith(basic))).toEqual([true, true]);
    expect(errors).not.toContain('pass');
  });

  it("takes the address of the index from pip's configuration", async () => {
    const { changes, index } = await withIndex(torchWheels);
    const folder = temporaryFolder();
    writeFiles(folder, { 'pip.conf': `[global]\ntimeout = 60\nindex-url = ${index}\n` });
    const configuration = { PIP_CONFIG_FILE: join(folder, 'pip.conf') };
    expect(await runServed(['setup'], { ...changes, ...configuration })).toMatchObject({
      status: 0,
    });
  });

  it("brings NVIDIA's libraries that the wheel asks for, and no others", async () => {
    const { asked, cache, changes, index } = await withIndex({
      [`torch-${version}-${tags}.whl`]: {
        ...wheelFiles(version),
        [`torch-${version}.dist-info/METADATA`]:
          'Name: torch\nRequires-Dist: filelock\n' +
          'Requires-Dist: cuda-toolkit[cublas,cudart]==13.0.2; platform_system == "Linux"\n' +
          'Requires-Dist: nvidia-nccl-cu13>=2.27; platform_system == "Linux"\n' +
          'Requires-Dist: nvidia-other; platform_system == "Windows"\n',
      },
      'cuda_toolkit-13.0.2-py2.py3-none-any.whl': {
        'cuda_toolkit-13.0.2.dist-info/METADATA':
          'Name: cuda-toolkit\n' +
          'Requires-Dist: nvidia-cublas==13.1.0.*; extra == "cublas"\n' +
          'Requires-Dist: nvidia-cuda-runtime==13.0.96.*; extra == "cudart"\n' +
          'Requires-Dist: nvidia-npp==13.0.1.*; extra == "npp"\n',
      },
      [`nvidia_cublas-13.1.0.3-py3-none-manylinux_2_27_${machine}.whl`]: {
        'nvidia/cu13/lib/libcublas.so.13': library('cublas'),
        'nvidia/cu13/include/cublas.h': '',
      },
      [`nvidia_cublas-13.2.0.9-py3-none-manylinux_2_27_${machine}.whl`]: {},
      [`nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_${machine}.manylinux_2_17_${machine}.whl`]:
        {
          'nvidia/cu13/lib/libcudart.so.13': library('cudart'),
        },
      [`nvidia_nccl_cu13-2.27.7-py3-none-manylinux_2_18_${machine}.whl`]: {
        'nvidia/nccl/lib/libnccl.so.2': library('old'),
      },
      [`nvidia_nccl_cu13-2.28.9-py3-none-manylinux_2_18_${machine}.whl`]: {
        'nvidia/nccl/lib/libnccl.so.2': library('nccl'),
      },
    });
    const { status, errors } = await runServed(['setup', '--cuda', '--index-url', index], changes);
    expect(status, errors).toBe(0);
    const made = join(cache, `libtorch-${version}-cuda`);
    expect(readdirSync(join(made, 'nvidia/cu13/lib')).sort()).toEqual([
      'libcublas.so.13',
      'libcudart.so.13',
    ]);
    expect(readdirSync(join(made, 'nvidia/nccl/lib'))).toEqual(['libnccl.so.2']);
    expect(asked).toContain(
      `/files/nvidia_nccl_cu13-2.28.9-py3-none-manylinux_2_18_${machine}.whl`,
    );
    expect(asked.join()).not.toContain('npp');
    expect(asked.join()).not.toContain('other');
    expect(readdirSync(cache)).toEqual([`libtorch-${version}-cuda`]);
  });

  it('says which versions an index has that lacks this one', async () => {
    const old = { [`torch-2.12.0+cpu-${tags}.whl`]: wheelFiles('2.12.0+cpu') };
    const { changes, index } = await withIndex(old);
    const { status, errors } = await runServed(['setup', '--index-url', index], changes);
    expect(status).toBe(1);
    expect(errors).toContain(`has no wheel of torch ${version}`);
    expect(errors).toContain('it has the versions 2.12.0+cpu');
  });

  it('asks for an index when nobody tells one, and gives the commands for no network', async () => {
    const { changes } = await withIndex({});
    const { status, errors } = runCommand(['setup'], { ...changes, HOME: temporaryFolder() });
    expect(status).toBe(1);
    expect(errors).toContain('this machine has no Python 3 with pip');
    expect(errors).toContain('--index-url <');
    expect(errors).toContain(`--dest libtorch-wheels 'torch==${version}'`);
    expect(errors).toContain('npx torchformer setup --from libtorch-wheels');
  });

  it('gives the commands for no network when nothing answers', async () => {
    const { changes } = await withIndex({});
    const nowhere = `${await deadAddress()}/simple`;
    const args = ['setup', '--cuda', '--index-url', nowhere];
    const { status, errors } = await runServed(args, changes);
    expect(status).toBe(1);
    expect(errors).toContain(`${nowhere}/torch/ cannot be fetched: `);
    expect(errors).toContain(`'torch===${version}'`);
    expect(errors).toContain('npx torchformer setup --cuda --from libtorch-wheels');
  });

  it.each(['ftp://index/simple', 'index'])('refuses %s as the index', (url) => {
    const { status, errors } = runCommand(['setup', '--index-url', url], {
      TORCHFORMER_CACHE: temporaryFolder(),
    });
    expect(status).toBe(1);
    expect(errors).toContain(`--index-url must be an http:// or https:// URL, got ${url}`);
  });
});

describe('a requirement of a wheel', () => {
  /** Whether each version satisfies the requirement. */
  const satisfied = (line: string, versions: readonly string[]): unknown => {
    const { output, errors } = runScript(`
      import { parseRequirement, satisfies } from '${root}dist/runtime/setup/requirement.js';
      const requirement = parseRequirement(${JSON.stringify(line)});
      console.log(JSON.stringify(${JSON.stringify(versions)}.map((v) => satisfies(v, requirement))));
    `);
    expect(errors).toBe('');
    return JSON.parse(output) as unknown;
  };

  it.each([
    ['a==13.0', ['13.0', '13.0.0', '13.0.1'], [true, true, false]],
    ['a==13.0.*', ['13.0', '13.0.9', '13.1', '13.01'], [true, true, false, false]],
    ['a>=2.9,<2.30', ['2.8', '2.9', '2.10', '2.30'], [false, true, true, false]],
    ['a (!=1.0)', ['1.0', '1.0.1'], [false, true]],
    ['a', ['1.0', '1.0rc1', '1.0.post2'], [true, false, true]],
  ])('%s takes the versions that pip would take', (line, versions, expected) => {
    expect(satisfied(line, versions)).toEqual(expected);
  });

  it('counts when its marker names this system among others, and the extra that was asked for', () => {
    const { output } = runScript(`
      import { parseRequirement } from '${root}dist/runtime/setup/requirement.js';
      const systems = "(sys_platform == 'win32' or sys_platform == '" + process.platform + "')";
      console.log(JSON.stringify([
        parseRequirement('a-b[c, d]==1; ' + systems + " and extra == 'x'", ['x']),
        parseRequirement('a==1; ' + systems + " and extra == 'x'", ['y']),
        parseRequirement("a==1; platform_system == 'Plan9'"),
        parseRequirement("a==1; sys_platform != '" + process.platform + "'"),
      ]));
    `);
    const clauses = [{ operator: '==', version: '1' }];
    expect(JSON.parse(output)).toEqual([
      { name: 'a-b', extras: ['c', 'd'], clauses, text: 'a-b[c, d]==1' },
      null,
      null,
      null,
    ]);
  });

  it('that only pip can resolve is told as such', () => {
    const { output } = runScript(`
      import { parseRequirement } from '${root}dist/runtime/setup/requirement.js';
      try {
        parseRequirement('a~=1.2');
      } catch (error) {
        console.log(error.code + ' ' + error.message);
      }
    `);
    expect(output).toContain('ERR_NATIVE_LOAD the wheel requires "a~=1.2", which only pip can');
  });
});
