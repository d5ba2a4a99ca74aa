/** Part `build`: the addon and the libraries of ops, against the PyTorch of this machine. */
import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import type { Tools } from './tools.js';

export interface Build {
  readonly configureSeconds: number;
  readonly compileSeconds: number;
  readonly jobs: number;
  /** Size of each file that was built, in bytes. */
  readonly files: Readonly<Record<string, number>>;
}

export interface BuildPlaces {
  readonly repository: string;
  readonly tree: string;
  /** Log of what cmake and ninja print. */
  readonly log: string;
}

/** Of an H200. */
const rehearsedCapability = '9.0';

/** The output folder: where the package looks for its binaries. */
export function builtFolder(tree: string): string {
  return join(tree, 'build/Release');
}

/** @throws Error with the last lines of the build's output */
export async function build(
  { repository, tree, log }: BuildPlaces,
  tools: Tools,
  seconds: number,
): Promise<Build> {
  const objects = join(tree, 'build-native');
  const end = performance.now() + seconds * 1000;
  const run = (command: string, args: readonly string[]): Promise<number> =>
    logged(command, args, {
      log,
      seconds: (end - performance.now()) / 1000,
      // CMake asks Node.js where the header packages are; they are not in the checkout.
      environment: { NODE_PATH: join(tree, 'node_modules') },
    });
  const configureSeconds = await run(tools.cmake, [
    ...['-S', repository, '-B', objects, '-G', 'Ninja', '-DCMAKE_BUILD_TYPE=Release'],
    `-DCMAKE_MAKE_PROGRAM=${tools.ninja}`,
    `-DTORCHFORMER_LIBTORCH=${tools.folder}`,
    `-DTORCHFORMER_OUTPUT=${builtFolder(tree)}`,
    `-DNODE_EXE=${process.execPath}`,
    // A warning of another compiler must not waste a run.
    '-DTORCHFORMER_WERROR=OFF',
    ...cudaDefinitions(tools),
  ]);
  const compileSeconds = await run(tools.ninja, ['-C', objects, '-j', String(tools.cores)]);
  const names = (await readdir(builtFolder(tree))).filter((name) => /\.(node|so)$/.test(name));
  const lacking = expectedFiles(tools).filter((name) => !names.includes(name));
  if (lacking.length > 0)
    throw new Error(`the build did not produce ${lacking.join(' and ')}; see ${log}`);
  const sizes = await Promise.all(
    names.map(async (name) => [name, (await stat(join(builtFolder(tree), name))).size] as const),
  );
  return { configureSeconds, compileSeconds, jobs: tools.cores, files: Object.fromEntries(sizes) };
}

/** The files that the build must produce. */
export function expectedFiles({ nvcc }: Pick<Tools, 'nvcc'>): string[] {
  return [
    'torchformer.node',
    'torchformer_bootstrap.node',
    'libtorchformer_core.so',
    ...(nvcc === null ? [] : ['libtorchformer_cuda.so']),
  ];
}

/** Our kernels, only for the GPU of this machine: each further architecture costs compile time. */
export function cudaDefinitions({ nvcc, gpu }: Pick<Tools, 'nvcc' | 'gpu'>): string[] {
  if (nvcc === null) return ['-DTORCHFORMER_CUDA=OFF'];
  const architecture = (gpu?.capability ?? rehearsedCapability).replace('.', '');
  return [
    '-DTORCHFORMER_CUDA=ON',
    `-DTORCHFORMER_CUDA_ARCHITECTURES=${architecture}`,
    `-DCMAKE_CUDA_COMPILER=${nvcc}`,
  ];
}

/** Runs a command and appends its output to the log. @returns the seconds it took */
async function logged(
  command: string,
  args: readonly string[],
  { log, seconds, environment }: { log: string; seconds: number; environment: NodeJS.ProcessEnv },
): Promise<number> {
  const start = performance.now();
  const output = createWriteStream(log, { flags: 'a' });
  output.write(`$ ${[command, ...args].join(' ')}\n`);
  // In a separate process group, so that the compilers end with it.
  const child = spawn(command, args, {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const kill = (): void => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  };
  process.once('exit', kill);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    kill();
  }, seconds * 1000);
  child.stdout.pipe(output, { end: false });
  child.stderr.pipe(output, { end: false });
  const code = await new Promise<number | string>((resolve) => {
    child.on('error', (error) => resolve(error.message));
    child.on('close', (status, signal) => resolve(status ?? signal ?? 'no exit code'));
  });
  clearTimeout(timer);
  process.off('exit', kill);
  output.end();
  await finished(output);
  if (late) throw new Error(`${command}: not finished after ${seconds.toFixed(0)} s; see ${log}`);
  if (code !== 0) {
    const lines = (await readFile(log, 'utf8')).trimEnd().split('\n').slice(-15);
    throw new Error(`${command}: exit code ${code}; last lines:\n${lines.join('\n')}`);
  }
  return (performance.now() - start) / 1000;
}
