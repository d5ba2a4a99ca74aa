/** Child processes of the compiled package, and libtorch folders made up for them. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

export const root = fileURLToPath(new URL('../../', import.meta.url));

export interface Outcome {
  readonly status: number | null;
  readonly output: string;
  readonly errors: string;
}

/** Environment variables; null removes one. */
export type Changes = Readonly<Record<string, string | null>>;

/** This process's environment with changes. */
export function environment(changes: Changes): NodeJS.ProcessEnv {
  const result: NodeJS.ProcessEnv = { ...process.env };
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete result[name];
    else result[name] = value;
  }
  return result;
}

/** Runs Node with these arguments, to its end. */
export function runNode(
  args: readonly string[],
  changes: Changes = {},
  cwd: string = root,
  input = '',
): Outcome {
  const child = spawnSync(process.execPath, args, {
    cwd,
    input,
    env: environment(changes),
    encoding: 'utf8',
    timeout: 50_000,
  });
  return { status: child.status, output: child.stdout, errors: child.stderr };
}

/** Runs a module given as text; `import 'torchformer'` works in it. */
export function runScript(script: string, changes: Changes = {}): Outcome {
  return runNode(['--input-type=module', '-e', script], changes);
}

/** Runs the command line. */
export function runCommand(args: readonly string[], changes: Changes = {}, input = ''): Outcome {
  return runNode([join(root, 'bin/torchformer.js'), ...args], changes, root, input);
}

/**
 * Runs `expression` in a child that has the loader's functions at hand and returns what it threw
 * (`code` and `message`) or gave (`value`). A child that ends otherwise fails the test.
 */
export function evaluate(
  expression: string,
  changes: Changes = {},
): { code?: string; name?: string; message?: string; value?: unknown } {
  const { status, output, errors } = runScript(
    `
    import { nativeAddon, bootstrap, loadedRuntime, exchangePaths } from '${root}dist/runtime/native/load.js';
    import { searchLibtorch } from '${root}dist/runtime/native/findLibtorch.js';
    let result;
    try {
      result = { value: (${expression}) ?? null };
    } catch (error) {
      result = { code: error.code, name: error.name, message: error.message };
    }
    console.log(JSON.stringify(result, (_, value) => typeof value === 'bigint' ? String(value) : value));
  `,
    changes,
  );
  if (status !== 0) throw new Error(`the child ended with ${status}:\n${output}${errors}`);
  return JSON.parse(output) as ReturnType<typeof evaluate>;
}

/** A folder that goes when the test ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'torchformer-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Writes files given as path → content below `folder`. */
export function writeFiles(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
}

/** Nothing to find anywhere: no variable, an empty cache, no Python. */
export function nowhere(cache: string): Changes {
  return {
    TORCHFORMER_LIBTORCH: null,
    LIBTORCH: null,
    TORCHFORMER_CUDA: null,
    TORCHFORMER_CACHE: cache,
    TORCHFORMER_PYTHON: join(cache, 'no-such-python'),
  };
}

/** Shared libraries with libtorch's names and no more in them than a version. */
export function compileFakeLibtorch(folder: string, abi: bigint): void {
  mkdirSync(join(folder, 'lib'), { recursive: true });
  const source = join(folder, 'fake.c');
  writeFileSync(source, `unsigned long long aoti_torch_abi_version(void) { return ${abi}ULL; }\n`);
  for (const name of ['libc10.so', 'libtorch_cpu.so']) {
    const args = [
      '-shared',
      '-fPIC',
      `-Wl,-soname,${name}`,
      '-o',
      join(folder, 'lib', name),
      source,
    ];
    const { status, stderr } = spawnSync('cc', args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`cc: ${stderr}`);
  }
}
