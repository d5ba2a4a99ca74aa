/** `torchformer setup` */
import { Option, type Command } from 'commander';
import { existsSync } from 'node:fs';
import { libtorchVersion } from '../runtime/package.js';
import { setUpLibtorch, type SetupOptions } from '../runtime/setup.js';

interface SetupFlags {
  cpu?: true;
  cuda?: true;
  from?: string;
  sha256?: string;
  force?: true;
}

export function registerSetup(program: Command): void {
  program
    .command('setup')
    .description(
      `Fetch libtorch ${libtorchVersion} into the cache that all projects of this user share.`,
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
      'take it from a folder (used in place), a wheel, a zip archive, or the URL of one',
    )
    .option(
      '--sha256 <digits>',
      'the checksum that the file or download must have; needed with a URL',
    )
    .option('--force', 'fetch it again although it is there')
    .addHelpText(
      'after',
      '\nNeeds Python 3 with pip to fetch and unpack. Without a network: bring the wheel or an unpacked\n' +
        'libtorch of this version and use --from. TORCHFORMER_CACHE names another cache folder,\n' +
        'TORCHFORMER_LIBTORCH a libtorch to use without set-up, TORCHFORMER_PYTHON the Python to use.',
    )
    .action(async (flags: SetupFlags) => {
      const options: SetupOptions = {
        variant: flags.cuda ? 'cuda' : 'cpu',
        log: (line) => process.stderr.write(`${line}\n`),
      };
      if (flags.from !== undefined) options.from = flags.from;
      if (flags.sha256 !== undefined) options.sha256 = flags.sha256;
      if (flags.force) options.force = true;
      await setUpLibtorch(options);
      if (!flags.cuda && existsSync('/proc/driver/nvidia/version')) {
        process.stderr.write(
          'This machine has an NVIDIA driver: `torchformer setup --cuda` fetches the GPU build.\n',
        );
      }
    });
}
