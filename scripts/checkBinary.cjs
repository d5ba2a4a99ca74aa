// node scripts/checkBinary.cjs [file…]: checks that the native libraries load wherever libtorch does.
// Default: the libraries in build/Release. Prints one line per fault; exit code 1 if there are any.
'use strict';
const { existsSync, readdirSync } = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { importCompiled, main, root, say, StepFailed } = require('./common.cjs');
const { faultsOf, floor } = require('./pack/binaryRules.cjs');

/** The libraries of the package in build/Release. */
function builtLibraries() {
  const folder = path.join(root, 'build/Release');
  if (!existsSync(folder)) throw new StepFailed(`${folder} is missing; run \`npm run build\``);
  return readdirSync(folder)
    .filter((name) => /^(lib)?torchformer\w*\.(node|so)$/.test(name))
    .map((name) => path.join(folder, name));
}

main(async () => {
  const { findLibtorch } = await importCompiled('runtime/native/findLibtorch.js');
  const { libraries, root: libtorch } = findLibtorch();
  const given = process.argv.slice(2);
  const files = given.length > 0 ? given : builtLibraries();
  const privateFolders = [root, libtorch, os.homedir(), os.tmpdir()];
  let count = 0;
  for (const file of files) {
    for (const fault of faultsOf(file, { libtorch: libraries, privateFolders })) {
      process.stdout.write(`${path.relative(process.cwd(), file)}: ${fault}\n`);
      count += 1;
    }
  }
  if (count > 0) throw new StepFailed(`${count} faults`);
  const versions = Object.entries(floor).map(([family, number]) => `${family}_${number}`);
  say(`ok: ${files.length} libraries need no more than ${versions.slice(0, 3).join(', ')}`);
});
