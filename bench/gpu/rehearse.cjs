// `node bench/gpu/rehearse.cjs --python <python> [--output <folder>] [--limit <seconds>]`: runs
// bench/gpu/run.sh --rehearse as on another machine: on a copy of the files that git tracks, with the folder
// that prepare.cjs made, and without this machine's Node.js. The Python must have PyTorch. The default limit
// is 1500 seconds, as a machine with few cores needs more time than one with a GPU.
'use strict';
const { execFileSync, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { parseArgs } = require('node:util');
const { main, root, say, StepFailed } = require('../../scripts/common.cjs');

main(async () => {
  const { values } = parseArgs({
    options: {
      python: { type: 'string', default: 'python3' },
      output: { type: 'string' },
      limit: { type: 'string', default: '1500' },
    },
  });
  const work = fs.mkdtempSync(path.join(os.tmpdir(), 'torchformer-rehearsal-'));
  try {
    const bytes = copyTree(path.join(work, 'copy'));
    say(`the copy has ${(bytes / 1e6).toFixed(1)} MB including bench/gpu/carry`);
    const output = path.resolve(values.output ?? path.join(root, 'build/rehearsal'));
    const start = performance.now();
    const { status } = spawnSync(
      'bash',
      ['bench/gpu/run.sh', 'bench/gpu/carry', output, '--rehearse', '--limit', values.limit],
      { cwd: path.join(work, 'copy'), stdio: 'inherit', env: environment(work, values.python) },
    );
    say(`finished after ${((performance.now() - start) / 1000).toFixed(0)} s`);
    process.stdout.write(fs.readFileSync(path.join(output, 'results.txt'), 'utf8'));
    if (status !== 0) throw new StepFailed(`exit code ${status}`);
  } finally {
    fs.rmSync(work, { recursive: true, force: true });
  }
});

/** Copies the files that git tracks or would track, and bench/gpu/carry. @returns their size in bytes */
function copyTree(target) {
  const list = execFileSync('git', ['ls-files', '-z', '-co', '--exclude-standard'], { cwd: root });
  const files = list.toString().split('\0').filter(Boolean);
  const carried = fs.readdirSync(path.join(root, 'bench/gpu/carry'));
  let bytes = 0;
  for (const file of [...files, ...carried.map((name) => `bench/gpu/carry/${name}`)]) {
    const from = path.join(root, file);
    if (!fs.existsSync(from)) continue;
    fs.mkdirSync(path.dirname(path.join(target, file)), { recursive: true });
    fs.copyFileSync(from, path.join(target, file));
    bytes += fs.statSync(from).size;
  }
  return bytes;
}

/** A PATH with links to all programs except those of Node.js, and no variables that would help. */
function environment(work, python) {
  const programs = path.join(work, 'programs');
  fs.mkdirSync(programs);
  for (const folder of process.env.PATH.split(path.delimiter).filter((each) =>
    fs.existsSync(each),
  )) {
    for (const name of fs.readdirSync(folder)) {
      if (/^(node|nodejs|npm|npx)$/.test(name)) continue;
      const link = path.join(programs, name);
      if (!fs.existsSync(link)) fs.symlinkSync(path.join(folder, name), link);
    }
  }
  const wanted = Object.entries(process.env).filter(([name]) =>
    /^(HOME|LANG|TMPDIR|CUDA_HOME)$/.test(name),
  );
  return { ...Object.fromEntries(wanted), PATH: programs, TORCHFORMER_BENCH_PYTHON: python };
}
