/** Projects that use the package, as a user without rights and with nothing but Node has them. */
import { spawnSync } from 'node:child_process';
import {
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export interface Result {
  readonly status: number | null;
  readonly output: string;
  readonly errors: string;
  readonly seconds: number;
}

export interface RunOptions {
  /** The Node to run. Default: this process's. */
  readonly node?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Without any network, not even this machine's own. */
  readonly offline?: boolean;
}

/** The user `nobody`, where the tests run as root; else whoever runs them has no rights already. */
const asRoot = process.getuid?.() === 0;
const nobody = asRoot ? userAndGroup('nobody') : null;

function userAndGroup(name: string): { uid: number; gid: number } {
  const ask = (flag: string): number =>
    Number(spawnSync('id', [flag, name], { encoding: 'utf8' }).stdout.trim());
  return { uid: ask('-u'), gid: ask('-g') };
}

/** A place for projects with a home of its own, so that no setting or cache of this machine counts. */
export class Consumers {
  readonly folder = mkdtempSync(join(tmpdir(), 'torchformer-install-'));
  /** Where packages come from; known only once the registry runs. */
  registry = '';

  constructor() {
    for (const name of ['', 'home', 'tmp', 'bin']) {
      const folder = join(this.folder, name);
      mkdirSync(folder, { recursive: true });
      own(folder);
    }
    symlinkSync(process.execPath, join(this.folder, 'bin/node'));
  }

  /** A new folder with these files in it. */
  project(name: string, files: Readonly<Record<string, string>> = {}): Project {
    const folder = join(this.folder, name);
    mkdirSync(folder);
    const all = {
      'package.json': JSON.stringify({ name: 'consumer', version: '1.0.0', private: true }),
      '.npmrc': `registry=${this.registry}\nfund=false\naudit=false\nupdate-notifier=false\n`,
      '.yarnrc.yml': yarnSettings(this.registry),
      ...files,
    };
    for (const [file, content] of Object.entries(all)) writeFileSync(join(folder, file), content);
    for (const file of ['', ...Object.keys(all)]) own(join(folder, file));
    return new Project(folder, this.folder);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function yarnSettings(registry: string): string {
  return [
    `npmRegistryServer: "${registry}"`,
    'unsafeHttpWhitelist: ["127.0.0.1"]',
    'enableTelemetry: false',
    'enableScripts: false',
    'npmMinimalAgeGate: 0',
    '',
  ].join('\n');
}

function own(path: string): void {
  if (nobody !== null) chownSync(path, nobody.uid, nobody.gid);
}

/** One project of a consumer. */
export class Project {
  constructor(
    readonly folder: string,
    private readonly base: string,
  ) {}

  /** Writes a file of the project. */
  write(name: string, content: string): void {
    writeFileSync(join(this.folder, name), content);
    own(join(this.folder, name));
  }

  /** Runs Node in the project's folder. The PATH holds Node and nothing else. */
  run(args: readonly string[], options: RunOptions = {}): Result {
    const { node = process.execPath, environment = {}, offline = false } = options;
    const start = performance.now();
    const [command, ...rest] = offline ? withoutNetwork([node, ...args]) : [node, ...args];
    const child = spawnSync(command, rest, {
      cwd: this.folder,
      encoding: 'utf8',
      maxBuffer: 1 << 26,
      timeout: 280_000,
      // `unshare` needs the rights of root, and gives them up itself.
      ...(offline || nobody === null ? {} : nobody),
      env: {
        PATH: join(this.base, 'bin'),
        HOME: join(this.base, 'home'),
        TMPDIR: join(this.base, 'tmp'),
        LANG: 'C.UTF-8',
        ...environment,
      },
    });
    if (child.error !== undefined) throw child.error;
    const seconds = (performance.now() - start) / 1000;
    return { status: child.status, output: child.stdout, errors: child.stderr, seconds };
  }

  /** The same, and the run must end well. */
  succeed(args: readonly string[], options: RunOptions = {}): Result {
    const result = this.run(args, options);
    if (result.status !== 0) {
      throw new Error(
        `exit code ${result.status}: ${args.join(' ')}\n${result.output}${result.errors}`,
      );
    }
    return result;
  }

  /** What all files take in MB, each counted once however many names it has. */
  megabytes(): number {
    const seen = new Set<number>();
    let bytes = 0;
    for (const name of readdirSync(this.folder, { recursive: true, encoding: 'utf8' })) {
      const { ino, size } = lstatSync(join(this.folder, name));
      if (!seen.has(ino)) bytes += size;
      seen.add(ino);
    }
    return bytes / 1e6;
  }
}

/** An empty network namespace; as root, the rights go afterwards. */
function withoutNetwork(command: readonly string[]): [string, ...string[]] {
  if (nobody === null) return ['/usr/bin/unshare', '-rn', ...command];
  const user = [`--reuid=${nobody.uid}`, `--regid=${nobody.gid}`, '--clear-groups'];
  return ['/usr/bin/unshare', '-n', '/usr/bin/setpriv', ...user, ...command];
}

/** Whether the consumer can reach `file`, which is the first thing to look at when nothing works. */
export function readableByConsumer(file: string): boolean {
  const args = ['-e', `require('fs').accessSync(${JSON.stringify(file)})`];
  return (
    spawnSync(process.execPath, args, { cwd: dirname(process.execPath), ...(nobody ?? {}) })
      .status === 0
  );
}
