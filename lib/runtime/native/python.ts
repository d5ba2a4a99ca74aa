/** The Python of the machine: setup runs its pip, and its torch can be used as libtorch. */
import { spawnSync } from 'node:child_process';

/** `TORCHFORMER_PYTHON`, else the usual names in the PATH. */
export function pythonCandidates(environment: NodeJS.ProcessEnv = process.env): readonly string[] {
  const own = environment['TORCHFORMER_PYTHON'];
  return own ? [own] : ['python3', 'python'];
}

/** The first Python 3 that starts, or null if there is none. */
export function findPython(environment: NodeJS.ProcessEnv = process.env): string | null {
  for (const executable of pythonCandidates(environment)) {
    if (ask(executable, 'import sys; print(sys.version_info[0])', environment) === '3')
      return executable;
  }
  return null;
}

export type PythonTorch =
  | { readonly executable: string; readonly folder: string }
  | { readonly folder: null; readonly problem: string };

/** The folder of the torch that is installed for Python, found without importing it. */
export function pythonTorchFolder(environment: NodeJS.ProcessEnv = process.env): PythonTorch {
  const executable = findPython(environment);
  if (executable === null) {
    return { folder: null, problem: `no ${pythonCandidates(environment).join(' or ')}` };
  }
  const folder = ask(executable, askForTorch, environment);
  if (!folder) return { folder: null, problem: `${executable} has no torch installed` };
  return { executable, folder };
}

const askForTorch = `
import importlib.util
spec = importlib.util.find_spec("torch")
print(list(spec.submodule_search_locations)[0] if spec and spec.submodule_search_locations else "")
`;

function ask(executable: string, script: string, environment: NodeJS.ProcessEnv): string | null {
  // -I would hide the user's PYTHONPATH and user site, where torch may be. The current folder must
  // not be searched, because it may have a folder named `torch`.
  const result = spawnSync(executable, ['-c', `import sys; sys.path[:1] = []\n${script}`], {
    env: environment,
    encoding: 'utf8',
    timeout: 30_000,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  if (result.error !== undefined || result.status !== 0) return null;
  return result.stdout.trim();
}
