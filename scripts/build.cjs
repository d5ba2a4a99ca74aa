// `npm run build`: TypeScript to dist/, native code to build/Release/. Also what binding.gyp calls.
'use strict';
const { main, prepare, root, say } = require('./common.cjs');

main(async () => {
  const libtorch = await prepare();
  say(`built ${root}/build/Release with libtorch ${libtorch.version} from ${libtorch.root}`);
});
