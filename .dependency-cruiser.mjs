// Which files may import which. `npm run lint` checks it with dependency-cruiser, which reads this file.
//
// Imports go one way, as CONTRIBUTING.md has it under "Layout", type-only ones included. They form no
// cycles:
// - none at run time. This is checked in dist/, where type-only imports are gone;
// - none of type-only imports either, except in the folders of the two classes whose methods are in
//   files of their own, Tensor and Module: each such file and its class name the other's types.

/** Folder of lib/ → the other folders that it may import from. */
const importsFrom = {
  runtime: [],
  tensor: ['runtime'],
  nn: ['tensor', 'runtime'],
  metrics: ['runtime'],
  optim: ['tensor', 'runtime'],
  data: ['nn', 'tensor', 'runtime'],
  io: ['nn', 'optim', 'data', 'tensor', 'runtime'],
  dialects: ['nn', 'tensor', 'runtime'],
  decode: ['nn', 'data', 'io', 'tensor', 'runtime'],
  train: ['decode', 'metrics', 'nn', 'optim', 'data', 'io', 'tensor', 'runtime'],
  serve: ['decode', 'nn', 'data', 'io', 'tensor', 'runtime'],
  cli: ['serve', 'train', 'decode', 'metrics', 'nn', 'optim', 'data', 'io', 'tensor', 'runtime'],
};

const folders = Object.keys(importsFrom).join('|');
const classesWithTheirMethods = '^lib/(tensor|nn/module)/';

export default {
  forbidden: [
    ...Object.entries(importsFrom).map(([folder, others]) => ({
      name: `imports of lib/${folder}`,
      comment: `lib/${folder} may import from: ${[folder, ...others].join(', ')}`,
      severity: 'error',
      from: { path: `^lib/${folder}/` },
      to: { path: '^lib/', pathNot: `^lib/(${[folder, ...others].join('|')})/` },
    })),
    {
      name: 'every folder has its place',
      comment: 'A new folder of lib/ needs an entry in the table of .dependency-cruiser.mjs',
      severity: 'error',
      from: { path: '^lib/[^/]+/', pathNot: `^lib/(${folders})/` },
      to: {},
    },
    {
      name: 'the package is complete',
      comment: 'What is published does not import from what is not',
      severity: 'error',
      from: { path: '^lib/' },
      to: { path: '^(bench|examples|scripts|tests)/' },
    },
    {
      name: 'no cycles at run time',
      comment: 'Move what both files need into a third, or hand it over as an argument',
      severity: 'error',
      from: { path: '^dist/' },
      to: { circular: true },
    },
    {
      name: 'no cycles',
      comment: 'Move the types that both files need into a third',
      severity: 'error',
      from: { pathNot: ['^dist/', classesWithTheirMethods] },
      to: { circular: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: String.raw`^(build|build-native)/|^dist/.*\.d\.[cm]?ts$` },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
  },
};
