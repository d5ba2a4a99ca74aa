/** Unpacks what libtorch needs from a wheel or a zip archive, with Python's own zip reader. */
import { spawn } from 'node:child_process';
import { TorchError } from './errors.js';

export interface Unpacked {
  /** What the wheel says it requires, as pip takes it; empty for other archives. */
  readonly requirements: readonly string[];
}

/**
 * Unpacks libtorch's libraries, headers, version and licences from `archive` into `target/torch`.
 * For the CPU only the three libraries it needs; for CUDA all but those that serve Python.
 * An `nvidia/` folder, as in NVIDIA's wheels, goes beside it.
 *
 * @throws TorchError ERR_NATIVE_LOAD when the archive cannot be read or holds none of it
 */
export async function unpackLibtorch(
  python: string,
  archive: string,
  target: string,
  variant: 'cpu' | 'cuda',
): Promise<Unpacked> {
  const { status, output, errors } = await runPython(python, unpackScript, [
    archive,
    target,
    variant,
  ]);
  if (status !== 0) {
    const reason = errors.trim().split('\n').at(-1) ?? `exit code ${status}`;
    throw new TorchError('ERR_NATIVE_LOAD', `${archive} cannot be unpacked: ${reason}`);
  }
  return { requirements: JSON.parse(output) as string[] };
}

async function runPython(
  python: string,
  script: string,
  args: readonly string[],
): Promise<{ status: number | null; output: string; errors: string }> {
  const child = spawn(python, ['-I', '-c', script, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const status = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject).on('close', resolve);
  });
  return { status, output, errors };
}

// A wheel holds torch/, the official archive libtorch/. Libraries get their execute bits from the
// umask, as pip gives them; nothing here depends on them.
const unpackScript = `
import json, os, re, shutil, sys, zipfile

archive, target, variant = sys.argv[1:]
cpu_libraries = re.compile(r"lib(c10|torch_cpu|gomp[-.\\w]*|iomp5)\\.so[.\\d]*")
python_libraries = re.compile(r"lib(torch_python|shm|torchbind_test|jitbackend_test|backend_with_compiler|aoti_custom_ops).*")

def place(name):
    parts = name.split("/")
    if ".." in parts or name.startswith("/"):
        raise SystemExit("the archive holds an unsafe name: " + name)
    if parts[0] == "nvidia":
        return name if variant == "cuda" and ".so" in parts[-1] else None
    if parts[0] == "torch.libs":
        return name
    if parts[0].endswith(".dist-info") and "licenses" in parts:
        return "/".join(["torch"] + parts[parts.index("licenses"):])
    if parts[0] not in ("torch", "libtorch"):
        return None
    rest = parts[1:]
    if rest[:1] == ["include"] or rest in (["version.py"], ["build-version"]):
        return "/".join(["torch"] + rest)
    if rest[:1] != ["lib"] or len(rest) != 2 or ".so" not in rest[1]:
        return None
    wanted = cpu_libraries.fullmatch(rest[1]) if variant == "cpu" else not python_libraries.fullmatch(rest[1])
    return "/".join(["torch"] + rest) if wanted else None

requirements = []
found = 0
with zipfile.ZipFile(archive) as source:
    for entry in source.infolist():
        if entry.is_dir():
            continue
        if re.fullmatch(r"torch-[^/]*\\.dist-info/METADATA", entry.filename):
            text = source.read(entry).decode("utf-8")
            requirements = re.findall(r"^Requires-Dist: (.*)$", text, re.M)
        name = place(entry.filename)
        if name is None:
            continue
        path = os.path.join(target, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with source.open(entry) as reader, open(path, "wb") as writer:
            shutil.copyfileobj(reader, writer, 1 << 20)
        found += 1
if found == 0:
    raise SystemExit("it holds no libtorch")
print(json.dumps([line.strip() for line in requirements]))
`;
