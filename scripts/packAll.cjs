// `npm run pack:all [-- main addon libtorch]`: packs the packages that would be published, as tarballs
// in artifacts/ (all three, or those named). Packing the same files again gives the same bytes.
'use strict';
const { rmSync } = require('node:fs');
const path = require('node:path');
const { main, prepare, root, StepFailed } = require('./common.cjs');
const { packPackages } = require('./pack/packages.cjs');

const kinds = ['main', 'addon', 'libtorch'];

main(async () => {
  const named = process.argv.slice(2);
  const unknown = named.find((name) => !kinds.includes(name));
  if (unknown !== undefined)
    throw new StepFailed(`unknown package ${unknown}; expected ${kinds.join(', ')}`);
  await prepare();
  const output = path.join(root, 'artifacts');
  if (named.length === 0) rmSync(output, { recursive: true, force: true });
  const packed = await packPackages({ output, ...(named.length > 0 ? { only: named } : {}) });

  const megabytes = (bytes) => (bytes / 1e6).toFixed(2);
  const rows = [
    ['package', 'files', 'unpacked MB', 'packed MB', 'SHA-1'],
    ...packed.map(({ name, version, entryCount, unpackedSize, size, shasum }) => [
      `${name}@${version}`,
      String(entryCount),
      megabytes(unpackedSize),
      megabytes(size),
      shasum.slice(0, 12),
    ]),
  ];
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  for (const row of rows) {
    process.stdout.write(`${row.map((cell, index) => cell.padEnd(widths[index])).join('  ')}\n`);
  }
  process.stdout.write(`in ${path.relative(process.cwd(), output) || '.'}/\n`);
});
