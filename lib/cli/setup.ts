/** `torchformer setup` */
import { Option, type Command } from 'commander';
import { existsSync } from 'node:fs';
import { listCache, removeFromCache, type CacheList } from '../runtime/setup/cacheList.js';
import { size } from '../runtime/diskSpace.js';
import { libtorchVersion } from '../runtime/package.js';
import { ownPlatform } from '../runtime/native/platform.js';
import { path } from './flagValues.js';
import { setUpLibtorch, type SetupOptions } from '../runtime/setup/setup.js';

interface SetupFlags {
  cpu?: true;
  cuda?: true;
  from?: string;
  sha256?: string;
  indexUrl?: string;
  force?: true;
  list?: true;
  json?: true;
  remove?: 'cpu' | 'cuda' | 'all';
}

const fetching = ['from', 'sha256', 'indexUrl', 'force', 'cpu', 'cuda'];

export function registerSetup(program: Command): void {
  program
    .command('setup')
    .description(
      `Download libtorch ${libtorchVersion} to the cache shared by all projects of this user.`,
    )
    .addOption(new Option('--cpu', 'the build for the CPU (default)').conflicts('cuda'))
    .addOption(
      new Option(
        '--cuda',
        'the build for NVIDIA GPUs, with the CUDA libraries (about 3 GB)',
      ).conflicts('cpu'),
    )
    .option(
      '--from <source>',
      'take it from a folder (used in place), a folder of wheels, a wheel, a zip or tar.gz archive, ' +
        'or the URL of one',
      path,
    )
    .option(
      '--sha256 <digits>',
      'the expected checksum of the file or download; a URL needs it, or #sha256=… at its end',
    )
    .option('--index-url <url>', 'the Python package index to download the wheel from')
    .option('--force', 'download it again even if it is already there')
    .addOption(new Option('--list', 'show what the cache has').conflicts([...fetching, 'remove']))
    .option('--json', 'with --list: as one JSON object')
    .addOption(
      new Option('--remove [what]', 'remove a build from the cache, or everything in it')
        .choices(['cpu', 'cuda', 'all'])
        .preset('all')
        .conflicts(fetching),
    )
    .addHelpText(
      'after',
      '\nThe wheel is downloaded with pip if Python 3 has it, else over HTTP from --index-url,\n' +
        'PIP_INDEX_URL or the index-url in pip.conf, through the proxy in HTTPS_PROXY, HTTP_PROXY and\n' +
        'NO_PROXY. An interrupted download is continued the next time. Without a network, copy the\n' +
        'wheel or an unpacked libtorch of this version to this machine and use --from.\n' +
        'TORCHFORMER_CACHE names another cache folder, TORCHFORMER_LIBTORCH a libtorch to use without\n' +
        'setup, TORCHFORMER_PYTHON the Python to use.',
    )
    .action(async (flags: SetupFlags, command: Command) => {
      if (flags.json && !flags.list) command.error('error: --json requires --list');
      if (flags.list) return print(listCache(), flags.json === true);
      if (flags.remove !== undefined) return await remove(flags.remove);
      await fetch(flags);
    });
}

async function fetch(flags: SetupFlags): Promise<void> {
  const options: SetupOptions = { variant: flags.cuda ? 'cuda' : 'cpu', log: say };
  if (flags.from !== undefined) options.from = flags.from;
  if (flags.sha256 !== undefined) options.sha256 = flags.sha256;
  if (flags.indexUrl !== undefined) options.indexUrl = flags.indexUrl;
  if (flags.force) options.force = true;
  await setUpLibtorch(options);
  const variable = ['TORCHFORMER_LIBTORCH', 'LIBTORCH'].find((name) => process.env[name]);
  if (variable !== undefined) {
    say(`${variable} is set: ${process.env[variable]} is used instead of the libtorch of setup.`);
  }
  const { nvidiaFile } = ownPlatform.system;
  if (!flags.cuda && nvidiaFile !== null && existsSync(nvidiaFile)) {
    say('This machine has an NVIDIA driver: `torchformer setup --cuda` downloads the GPU build.');
  }
}

async function remove(what: 'cpu' | 'cuda' | 'all'): Promise<void> {
  const removed = await removeFromCache(what, say);
  for (const path of removed) say(`removed ${path}`);
  if (removed.length === 0) say('there was nothing to remove');
}

function print(list: CacheList, asJson: boolean): void {
  process.stdout.write(asJson ? `${JSON.stringify(list, null, 2)}\n` : describe(list));
}

function describe({ cache, entries, downloads }: CacheList): string {
  const lines = entries.map((entry) => {
    const { version, variant, bytes, path, linkedTo, inUse, problem } = entry;
    const state = problem ?? (inUse ? 'in use' : 'not in use');
    const space = linkedTo === null ? size(bytes) : 'a link';
    const place = linkedTo === null ? path : `${path} -> ${linkedTo}`;
    return `${version.padEnd(9)} ${variant.padEnd(4)} ${space.padStart(7)}  ${place}  (${state})`;
  });
  const parts = downloads.map(
    ({ path, bytes }) => `unfinished     ${size(bytes).padStart(7)}  ${path}`,
  );
  const broken = entries.some(({ problem }) => problem !== null);
  const advice = broken
    ? ['`torchformer setup --force` (with --cuda for that build) replaces what is broken.']
    : [];
  const all = [...lines, ...parts, ...advice];
  return `${all.length === 0 ? `${cache} has no libtorch` : all.join('\n')}\n`;
}

/** Progress goes to standard error; standard output has only the result. */
function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
