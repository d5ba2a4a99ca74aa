/** Examines each part of the runtime separately, so that one problem does not hide the others. */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, sep } from 'node:path';
import { addonFix, searchAddon, type AddonFiles } from '../native/addonFiles.js';
import { compareVersions, highestNeed, readElf } from '../native/elf.js';
import {
  isVariable,
  libtorchMissing,
  searchLibtorch,
  type Search,
} from '../native/findLibtorch.js';
import { processLibc } from '../native/libc.js';
import { bootstrap, cudaMissing, cudaSetting } from '../native/load.js';
import { checkInteger, checkOptions } from '../arguments.js';
import {
  addonPackage,
  cacheFolder,
  libtorchVersion,
  packageRoot,
  packageVersion,
} from '../package.js';
import { ownPlatform, unsupportedSystem } from '../native/platform.js';
import { probeRuntime, type ProbeResult } from './probeRuntime.js';
import type { ProbeFact } from './doctorProbe.js';
import type { RuntimeReport } from './runtimeReport.js';

/** Options of {@link examineRuntime}. */
export interface ExamineOptions {
  /** Seconds after which a computation counts as stuck. Default 120: drivers start slowly. */
  timeout?: number;
}

/**
 * Examines the runtime. Libraries are loaded and used in a separate process, so a crash there
 * becomes part of the report.
 *
 * @throws TypeError, RangeError only for invalid options
 */
export async function examineRuntime(options: ExamineOptions = {}): Promise<RuntimeReport> {
  checkOptions('examineRuntime', options, ['timeout']);
  const { timeout = 120 } = options;
  checkInteger('examineRuntime', 'timeout', timeout, 1, 86_400);
  return await new Examination().run(timeout);
}

class Examination {
  /** Each problem with its advice; the report shows the advice of the first one. */
  private readonly findings: { problem: string; advice: string }[] = [];

  async run(timeout: number): Promise<RuntimeReport> {
    const libc = processLibc();
    const unsupported = unsupportedSystem();
    if (unsupported !== null) {
      this.find(unsupported, 'Use a system with glibc, such as Debian or Ubuntu.');
    }
    const files = unsupported === null ? this.addon() : null;
    // The folder can be inspected even if the addon does not load.
    const folder = searchLibtorch().found?.libraries;
    const libcNeeded = glibcNeed([
      ...(files === null ? [] : [files.addon, files.bootstrap]),
      ...(folder === undefined
        ? []
        : [libraries.c10, libraries.torchCpu].map((name) => join(folder, name))),
    ]);
    const tooOld =
      libc.version !== null && libcNeeded !== null && compareVersions(libc.version, libcNeeded) < 0;
    if (tooOld) {
      this.find(
        `glibc ${libcNeeded} is needed, but this system has ${libc.version}`,
        `Use a system with glibc ${libcNeeded} or later.`,
      );
    }
    const builtFor = files === null || tooOld ? null : this.expectedVersion(files);
    const search = searchLibtorch({ version: builtFor ?? libtorchVersion });
    const { found } = search;
    if (unsupported === null) this.libtorch(search, builtFor ?? libtorchVersion);
    this.cudaVariable(found);

    const probed =
      files === null || found === null || builtFor === null || this.findings.length > 0
        ? null
        : await this.compute(timeout, files, found);
    const facts = probed?.facts ?? [];
    const loaded = factOf(facts, 'loaded');
    const cuda = factOf(facts, 'cuda');
    this.requiredGpu(cuda?.problem ?? null);
    const [first] = this.findings;
    return {
      healthy: first === undefined,
      advice: first?.advice ?? 'Nothing to do.',
      problems: this.findings.map(({ problem }) => problem),
      torchformer: packageVersion(),
      node: {
        version: process.versions.node,
        napi: Number(process.versions['napi']),
        path: process.execPath,
      },
      platform: {
        os: process.platform,
        arch: process.arch,
        libc: libc.kind,
        libcVersion: libc.version,
        libcNeeded,
      },
      addon: files === null ? null : { path: files.addon, place: placeOf(files), builtFor },
      libtorch:
        found === null
          ? null
          : {
              version: found.version,
              path: found.root,
              place: found.place,
              cuda: found.cuda,
              loaded: loaded?.library ?? null,
            },
      searched: search.attempts,
      cache: orNull(cacheFolder),
      processor: {
        cores: availableParallelism(),
        features: processorFeatures(),
        capability: loaded?.capability ?? null,
        float32Products: loaded?.float32Products ?? null,
        bfloat16Products: loaded?.bfloat16Products ?? null,
        int8Products: loaded?.int8Products ?? null,
        threads: loaded?.threads ?? null,
      },
      cuda: {
        opened: loaded?.opened ?? false,
        available: (cuda?.devices ?? 0) > 0,
        reason: cuda?.problem ?? loaded?.reason ?? 'libtorch was not loaded',
        kernelsProblem: loaded?.kernelsProblem ?? null,
      },
      devices: facts.flatMap((fact) =>
        fact.kind === 'device'
          ? [{ device: fact.device, works: fact.problem === null, problem: fact.problem }]
          : [],
      ),
      decoding: facts.flatMap((fact) =>
        fact.kind === 'decoding'
          ? [{ precision: fact.precision, works: fact.problem === null, problem: fact.problem }]
          : [],
      ),
    };
  }

  private find(problem: string, advice: string): void {
    if (!this.findings.some((finding) => finding.problem === problem)) {
      this.findings.push({ problem, advice });
    }
  }

  private addon(): AddonFiles | null {
    const search = searchAddon();
    if (search.files === null) this.find(search.error.message, search.advice);
    return search.files;
  }

  /** From the bootstrap addon, which needs no libtorch and has no effect until it is used. */
  private expectedVersion(files: AddonFiles): string | null {
    try {
      return bootstrap().expectedVersion;
    } catch (error) {
      this.find((error as Error).message, addonFix(files));
      return null;
    }
  }

  private libtorch(search: Search, version: string): void {
    const named = search.attempts.find(({ place, path }) => path !== null && isVariable(place));
    const cuda = search.attempts.some(
      ({ place, problem }) => place === 'setup cache (CUDA)' && problem?.startsWith('/') === true,
    );
    const setup = `npx torchformer setup${cuda ? ' --cuda' : ''}`;
    if (search.found === null) {
      this.find(
        libtorchMissing(search, version).message,
        named === undefined
          ? `Run \`${setup}\`.`
          : `Set ${named.place} to a libtorch ${version}, or unset it and run \`${setup}\`.`,
      );
    }
  }

  /** Checks TORCHFORMER_CUDA: with a value that cannot be satisfied, no libtorch is loaded. */
  private cudaVariable(found: Search['found']): void {
    try {
      if (cudaSetting() !== '1' || found === null || found.cuda) return;
    } catch (error) {
      this.find((error as Error).message, 'Set TORCHFORMER_CUDA to 0 or 1, or unset it.');
      return;
    }
    const way = isVariable(found.place)
      ? `set ${found.place} to a libtorch with CUDA`
      : 'run `npx torchformer setup --cuda`';
    this.find(cudaMissing(found).message, `Set TORCHFORMER_CUDA to 0 or unset it, or ${way}.`);
  }

  /** An unusable GPU is a problem only if the variable requires one. */
  private requiredGpu(problem: string | null): void {
    if (problem === null || process.env['TORCHFORMER_CUDA'] !== '1') return;
    this.find(`TORCHFORMER_CUDA=1, but no GPU can be used: ${problem}`, driverAdvice);
  }

  /** Loads libtorch and multiplies matrices; if CUDA crashes, tries again without it. */
  private async compute(
    timeout: number,
    files: AddonFiles,
    found: NonNullable<Search['found']>,
  ): Promise<ProbeResult> {
    const { cuda } = found;
    const freshLibtorch = isVariable(found.place)
      ? `Set ${found.place} to another libtorch ${libtorchVersion}, or unset it and run ` +
        '`npx torchformer setup`.'
      : `Run \`npx torchformer setup${cuda ? ' --cuda' : ''} --force\`.`;
    const probed = await probeRuntime(process.env, timeout);
    for (const fact of probed.facts) {
      if (fact.kind === 'decoding' && fact.problem !== null) {
        this.find(`decoding in ${fact.precision} ${fact.problem}`, decodingAdvice);
      }
      if (fact.kind !== 'device' || fact.problem === null) continue;
      const problem = `multiplying two matrices on ${fact.device} failed: ${fact.problem}`;
      this.find(problem, fact.device === 'cpu' ? freshLibtorch : driverAdvice);
    }
    if (probed.problem === null) return probed;
    const cpuWorks = probed.facts.some((fact) => fact.kind === 'device' && fact.device === 'cpu');
    if (!probed.crashed || !cuda || process.env['TORCHFORMER_CUDA'] === '0') {
      const ofAddon = probed.problem.startsWith(files.addon);
      this.find(probed.problem, ofAddon ? addonFix(files) : freshLibtorch);
      return probed;
    }
    if (cpuWorks) {
      this.find(probed.problem, driverAdvice);
      return probed;
    }
    const without = await probeRuntime({ ...process.env, TORCHFORMER_CUDA: '0' }, timeout);
    this.find(probed.problem, without.problem === null ? driverAdvice : freshLibtorch);
    return without.problem === null ? without : probed;
  }
}

const { libraries } = ownPlatform;

const driverAdvice =
  'Check the NVIDIA driver with `nvidia-smi`; TORCHFORMER_CUDA=0 uses only the CPU.';

const decodingAdvice =
  'Please report this output: on this processor, a translation may depend on those made beside it.';

function factOf<K extends ProbeFact['kind']>(
  facts: readonly ProbeFact[],
  kind: K,
): Extract<ProbeFact, { kind: K }> | undefined {
  return facts.find((fact): fact is Extract<ProbeFact, { kind: K }> => fact.kind === kind);
}

function placeOf({ addon }: AddonFiles): string {
  if (process.env['TORCHFORMER_ADDON']) return 'TORCHFORMER_ADDON';
  return addon.startsWith(join(packageRoot, 'build') + sep) ? 'local build' : addonPackage;
}

/** The highest glibc version that any of these files needs; null for files of other systems. */
function glibcNeed(paths: readonly string[]): string | null {
  const needs = paths.flatMap((path) => {
    const file = readElf(path);
    return typeof file === 'string' ? [] : (highestNeed(file, 'GLIBC') ?? []);
  });
  return needs.sort(compareVersions).at(-1) ?? null;
}

const relevantFeatures =
  /^(avx|avx2|fma|avx512f|avx512_vnni|avx512_bf16|avx512_fp16|amx_tile|amx_bf16|amx_int8|asimd|asimddp|bf16|sve)$/;

/** Empty if the system has no file that lists them. */
function processorFeatures(): readonly string[] {
  const { processorFile } = ownPlatform.system;
  if (processorFile === null) return [];
  const text = orNull(() => readFileSync(processorFile, 'utf8')) ?? '';
  const flags = /^(?:flags|Features)\s*:\s*(.*)$/m.exec(text)?.[1] ?? '';
  return flags.split(/\s+/).filter((flag) => relevantFeatures.test(flag));
}

function orNull<T>(action: () => T): T | null {
  try {
    return action();
  } catch {
    return null;
  }
}
