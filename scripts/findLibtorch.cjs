// Prints the folder of the libtorch to build with. CMakeLists.txt runs this if no folder was given.
'use strict';
const { compileTypeScript, ensureLibtorch, ensurePackages, main } = require('./common.cjs');

main(async () => {
  ensurePackages();
  compileTypeScript();
  const libtorch = await ensureLibtorch();
  process.stdout.write(libtorch.root);
});
