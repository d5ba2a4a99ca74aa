// `npm run release:check [-- --quick]`: runs every step of a release except publishing, which is manual.
// Runs all steps even if one fails, and ends with the list of manual steps. `--quick` skips the steps
// that take minutes, and reports it. The output of the steps is in build/release-check/.
'use strict';
const { spawnSync } = require('node:child_process');
const {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} = require('node:fs');
const path = require('node:path');
const {
  ensurePackages,
  importCompiled,
  main,
  root,
  StepFailed,
  compileTypeScript,
} = require('./common.cjs');
const { handSteps, kindOf, packageFaults, versionFaults } = require('./releaseCheckFacts.cjs');

const quick = process.argv.includes('--quick');
const logs = path.join(root, 'build/release-check');
const artifacts = path.join(root, 'artifacts');
const read = (file) => readFileSync(path.join(root, file), 'utf8');
const readJson = (file) => JSON.parse(read(file));

/** Runs a command to completion and writes its output to a log. @returns the faults; empty if none */
function command(name, program, args) {
  const result = spawnSync(program, args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28 });
  const log = path.join(logs, `${name.replaceAll(/\W+/g, '-')}.log`);
  const text = `${result.stdout ?? ''}${result.stderr ?? ''}${result.error?.message ?? ''}`;
  writeFileSync(log, text);
  if (result.status === 0) return [];
  const end = text.trimEnd().split('\n').slice(-15);
  return [`exit code ${result.status}; last lines of ${path.relative(root, log)}:`, ...end];
}

function npmScript(name) {
  if (!(name in readJson('package.json').scripts)) return [`package.json has no script "${name}"`];
  return command(name, 'npm', name === 'test' ? ['test'] : ['run', name]);
}

function uncommitted() {
  const { status, stdout, stderr } = spawnSync('git', ['status', '--porcelain'], {
    cwd: root,
    encoding: 'utf8',
  });
  if (status !== 0) return [`git: ${stderr.trim()}`];
  const lines = stdout.split('\n').filter((line) => line !== '');
  return lines.length === 0 ? [] : ['uncommitted changes would not be part of the tag:', ...lines];
}

async function libtorchVersion() {
  return (await importCompiled('runtime/package.js')).libtorchVersion;
}

async function versions() {
  return versionFaults({
    manifest: readJson('package.json'),
    lock: readJson('package-lock.json'),
    changelog: read('CHANGELOG.md'),
    readme: read('README.md'),
    libtorchVersion: await libtorchVersion(),
  });
}

function tarballs() {
  if (!existsSync(artifacts)) return [];
  return readdirSync(artifacts)
    .filter((name) => name.endsWith('.tgz'))
    .map((name) => ({ file: `artifacts/${name}`, ...manifestIn(path.join(artifacts, name)) }));
}

function manifestIn(tarball) {
  const { stdout } = spawnSync('tar', ['-xzOf', tarball, 'package/package.json'], {
    encoding: 'utf8',
  });
  const manifest = JSON.parse(stdout);
  return { manifest, kind: kindOf(manifest.name), bytes: statSync(tarball).size };
}

async function packages() {
  const { version } = readJson('package.json');
  return packageFaults(tarballs(), { version, libtorchVersion: await libtorchVersion() });
}

const steps = [
  { name: 'everything is committed', run: uncommitted },
  { name: 'versions match', run: versions },
  { name: 'lint', run: () => npmScript('lint') },
  { name: 'format', run: () => npmScript('format:check') },
  {
    name: 'the API report is up to date',
    run: () => command('api', 'node', ['scripts/api.mjs', '--check']),
  },
  { name: 'documentation site', run: () => npmScript('docs') },
  { name: 'tests', slow: true, run: () => npmScript('test') },
  { name: 'packages are packed', slow: true, run: () => npmScript('pack:all') },
  { name: 'packages match each other', slow: true, run: packages },
  { name: 'publint and arethetypeswrong', slow: true, run: () => npmScript('check:package') },
  { name: 'packages install and work', slow: true, run: () => npmScript('test:install') },
];

main(async () => {
  const unknown = process.argv.slice(2).find((argument) => argument !== '--quick');
  if (unknown !== undefined)
    throw new StepFailed(`unknown argument ${unknown}; the only option is --quick`);
  ensurePackages();
  compileTypeScript();
  mkdirSync(logs, { recursive: true });
  const tell = (word, text) => process.stdout.write(`${word.padEnd(8)} ${text}\n`);
  let failed = 0;
  for (const { name, slow = false, run } of steps) {
    if (slow && quick) {
      tell('skipped', name);
      continue;
    }
    const faults = await run();
    tell(faults.length === 0 ? 'ok' : 'FAILED', name);
    for (const line of faults) process.stdout.write(`           ${line}\n`);
    if (faults.length > 0) failed++;
  }
  if (failed > 0) {
    process.stdout.write(`\n${failed} failed: not ready for a release.\n`);
    process.exitCode = 1;
    return;
  }
  process.stdout.write(
    quick
      ? '\nNo step of --quick failed. Before a release, run npm run release:check.\n'
      : '\nReady. Nothing was published. Remaining manual steps, in this order:\n',
  );
  if (quick) return;
  const { version } = readJson('package.json');
  handSteps(version, read('CHANGELOG.md'), tarballs()).forEach((step, index) => {
    process.stdout.write(`  ${index + 1}. ${step}\n`);
  });
});
