/** Looks at each part of the runtime on its own, so that one fault does not hide the others. */
import { availableParallelism } from 'node:os';
import { findAddon } from './addonFiles.js';
import { searchLibtorch, type Search } from './findLibtorch.js';
import { bootstrap, loadedRuntime, nativeAddon } from './load.js';
import { cacheFolder, libtorchVersion, packageVersion } from './package.js';

/** What {@link examineRuntime} finds. */
export interface Examination {
  /** The findings, to print. */
  readonly lines: readonly string[];
  /** Whether the package can compute on this machine. */
  readonly healthy: boolean;
}

/** Examines the runtime; loads the addon to see whether it works. Throws nothing. */
export function examineRuntime(): Examination {
  const problems: string[] = [];
  const attempt = <T>(action: () => T): T | null => {
    try {
      return action();
    } catch (error) {
      const { message } = error as Error;
      if (!problems.includes(message)) problems.push(message);
      return null;
    }
  };

  const lines = [
    row('torchformer', packageVersion()),
    row(
      'Node.js',
      `${process.versions.node} on ${process.platform} ${process.arch}, ${availableParallelism()} cores`,
    ),
  ];

  const files = attempt(findAddon);
  const parts = files === null ? null : attempt(bootstrap);
  const expected = parts?.expectedVersion ?? libtorchVersion;
  lines.push(
    row('addon', files === null ? 'not found' : `${files.addon}, built for libtorch ${expected}`),
  );

  const search = searchLibtorch({ version: expected });
  lines.push(...describeSearch(search), row('cache', cacheFolder()));

  const addon = files === null ? null : attempt(nativeAddon);
  const runtime = loadedRuntime();
  if (addon !== null && runtime !== null) {
    lines.push(
      row('CUDA', `${runtime.cuda.open ? 'opened' : 'not opened'}: ${runtime.cuda.reason}`),
    );
    lines.push(row('loaded', parts?.loaded() ?? 'nothing'));
    const { cpuCapability, float32Products, bfloat16Products } = addon.versions();
    lines.push(
      row('products', `float32 by ${float32Products}, bfloat16 as ${bfloat16Products}`),
      row('processor', cpuCapability),
    );
  } else if (search.found === null && files === null) {
    problems.push('libtorch was not found; run `npx torchformer setup`');
  }

  lines.push('');
  if (problems.length === 0) lines.push('No problem found.');
  else lines.push(...problems.map((problem) => `Problem: ${problem}`));
  return { lines, healthy: problems.length === 0 };
}

function describeSearch({ found, attempts }: Search): string[] {
  const first =
    found === null
      ? 'not found'
      : `${found.version ?? 'unknown version'} in ${found.root}, from ${found.place}`;
  const rows = [row('libtorch', first)];
  for (const { place, path, problem } of attempts) {
    if (problem === null) continue;
    const name = rows.length === 1 ? 'looked in' : '';
    rows.push(row(name, `${place}${path === null ? '' : ` ${path}`}: ${problem}`));
  }
  return rows;
}

function row(name: string, value: string): string {
  return `${name.padEnd(12)} ${value}`;
}
