/** The parts of a run in order: those that others need first, then by importance. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { runChild, runOurs } from '../child.js';
import { build, builtFolder } from './build.js';
import { usualLimit, type GpuOptions } from './gpuOptions.js';
import { parityOfOps } from './parityOfOps.js';
import { PartFailed, PartSkipped, type Part } from './parts.js';
import type { Place } from './place.js';
import { findTools, type Tools } from './tools.js';
import { trainTurns } from './trainTurns.js';

/** The time limits are for the usual duration of a run, and scale with it. */
export function allParts(options: GpuOptions): Part[] {
  const share = options.limit / usualLimit;
  return partsInUsualTime(options).map((part) => ({ ...part, limit: part.limit * share }));
}

function partsInUsualTime(options: GpuOptions): Part[] {
  const { repository, tree, output, python, rehearse } = options;
  const programs = join(repository, 'bench/gpu');
  const device = rehearse ? 'cpu' : 'cuda';
  let tools: Tools | null = null;
  const place = (): Place => {
    if (tools === null) throw new Error('the part tools has not run');
    return { repository, tree, output, python, rehearse, device, tools };
  };
  return [
    {
      name: 'tools',
      limit: 60,
      run: async (seconds) => {
        tools = await findTools({ python, gpu: programs, rehearse }, seconds);
        // What the package opens: this PyTorch, and CUDA if that is what is measured.
        process.env['TORCHFORMER_LIBTORCH'] = tools.folder;
        process.env['TORCHFORMER_CUDA'] = rehearse ? '0' : '1';
        return tools;
      },
    },
    {
      name: 'build',
      limit: 300,
      needs: ['tools'],
      run: async (seconds) => {
        const log = join(output, 'build.log');
        await rm(log, { force: true });
        return build({ repository, tree, log }, place().tools, seconds);
      },
    },
    {
      name: 'GPU from Node.js',
      limit: 30,
      needs: ['build'],
      run: async (seconds) => {
        if (rehearse) throw new PartSkipped('no GPU');
        return runOurs('gpu/gpuFacts.js', [], { seconds });
      },
    },
    {
      name: 'parity of ops',
      limit: 100,
      needs: ['build'],
      run: (seconds) =>
        parityOfOps({ python, repository, libraries: builtFolder(tree), device, output }, seconds),
    },
    {
      name: 'parity of a model',
      limit: 40,
      needs: ['build'],
      run: async (seconds) => {
        const file = join(tree, 'batches/tiny.batches.json');
        const found = await runOurs<{ faults: string[] }>('gpu/parityOfModel.js', [file, device], {
          seconds,
        });
        if (found.faults.length > 0) throw new PartFailed(found.faults.join('; '), found);
        return found;
      },
    },
    ...(rehearse ? (['tiny'] as const) : (['seed', 'tokens'] as const)).map((size): Part => ({
      name: `train ${size}`,
      limit: 160,
      needs: ['build'],
      run: (seconds) => trainTurns(size, place(), seconds),
    })),
    {
      name: 'times of ops',
      limit: 60,
      needs: ['build'],
      run: (seconds) => {
        const args = ['--libraries', builtFolder(tree), '--device', device];
        return runChild(python, [join(programs, 'op_times.py'), ...args], { seconds });
      },
    },
  ];
}
