/** docs/troubleshooting.md: each of its headings is a part of an error that is caused here. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { evaluate, nowhere, root, runNode, runScript } from '../process/support.js';
import { textOf } from './examplesInPages.js';

/** A heading in backquotes, and the text under it. */
const entries = [
  ...textOf('docs/troubleshooting.md').matchAll(/^### `(.*)`\n([\s\S]*?)(?=^##|$(?![\s\S]))/gm),
].map(([, heading, text]) => ({ heading: heading as string, text: text as string }));

/** What was thrown, as a child tells it. */
interface Thrown {
  readonly name?: string;
  readonly code?: string;
  readonly message?: string;
}

/** Whether `…` in the heading can be filled so that the error has it. */
function fits(heading: string, message: string): boolean {
  const parts = heading.split('…').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(parts.join('.*?'), 's').test(message);
}

/** What a GPU would be needed for: an op that throws libtorch's text. */
const says = (text: string): string =>
  `tf.call('aten::_assert_async.msg', tf.zeros([]), ${JSON.stringify(text)})`;

/** One statement each; all run in one child with `tf` and the constants below at hand. */
const causes: Readonly<Record<string, string>> = {
  device: `tf.zeros([1], { device: 'cuda' })`,
  driver: says('The NVIDIA driver on your system is too old (found version 12040). Please update'),
  gpuMemory: says(
    'CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which ' +
      '1.00 GiB is free. Process 1 has 7.00 GiB memory in use.',
  ),
  lost: says('CUDA error: device-side assert triggered'),
  devices: `tf.ones([2]).add(tf.call('aten::empty.memory_format', [2], { device: 'meta' }))`,
  file: `await tf.readPairs('none.csv', { src: 'en', tgt: 'de' })`,
  column: `await tf.readPairs('pairs.csv', { src: 'en', tgt: 'zh' })`,
  cells: `await tf.readPairs('pairs.csv', { src: 'en', tgt: 'de' })`,
  none: `await tf.encodePairs([{ src: '<pad>', tgt: 'b' }], { tokenizer, specialIds })`,
  pad: `tf.findSpecialIds(tokenizer, { pad: 2, eos: 2 })`,
  dataset: `await fit({}, await tf.TranslationDataset.fromPairs([{ src: 'a', tgt: 'b' }], { tokenizer, specialIds }))`,
  option: `tf.makeModel(9, { layers: 2 })`,
  dtype: `model().encode(tf.tensor([[1, 2]]), null)`,
  vocabulary: `model().encode(ids([1, 9]), null)`,
  positions: `model().encode(ids([1, 2, 3, 4, 5, 6, 7]), null)`,
  mask: `tf.attention(tf.ones([2, 3, 4]), tf.ones([2, 5, 4]), tf.ones([2, 5, 4]), { mask: tf.ones([2, 5]) })`,
  flatMask: `model().encode(ids([1, 5], [6, 7]), tf.ones([2, 2]))`,
  inverted: `model().forward(ids([1, 5, 6]), ids([1, 5, 6]), null, tf.subsequentMask(3).logicalNot())`,
  state: `model().loadStateDict(tf.makeModel(10, sizes).stateDict())`,
  product: `tf.ones([2, 3]).matmul(tf.ones([2, 3]))`,
  constant: `tf.ones([1]).sum().backward()`,
  again: `const x = tf.ones([1], { requiresGrad: true }); const y = x.mul(x); y.backward(); y.backward()`,
  disposed: `const x = tf.ones([1]); x.dispose(); x.add(1)`,
  tidy: `tf.tidy(async () => tf.ones([1]))`,
  noGrad: `tf.noGrad(async () => tf.ones([1]))`,
  memory: `tf.zeros([2 ** 50])`,
  nan: `const m = model(); tf.noGrad(() => m.parameters()[0].fill_(NaN)); await fit({ model: m })`,
  earlier: `await fit({ out: 'run' }); await fit({ out: 'run' })`,
  iterator: `await fit({ epochs: 2 }, [batch()].values())`,
  tokenizer: `new tf.Trainer(model(), { specialIds, tokenizer })`,
  long: `await new tf.Translator(large().eval(), { tokenizer, specialIds }).translate(['abcdefgh'])`,
  notNumbers: `const m = large().eval(); tf.noGrad(() => m.parameters()[0].fill_(NaN)); await new tf.Translator(m, { tokenizer, specialIds }).translate(['a'])`,
  translator: `const t = new tf.Translator(large().eval(), { tokenizer, specialIds }); t.dispose(); await t.translate(['a'])`,
  training: `await new tf.Translator(large(), { tokenizer, specialIds }).translate(['a'])`,
  ownModules: `const m = model(); m.generator = new tf.Generator(8, 12); await tf.saveModel('own', m); await tf.loadModel('own')`,
  bare: `await tf.saveModel('bare', model()); await tf.Translator.load('bare')`,
  changed: `const t = tf.ones([9]); const saving = tf.writeSafetensors('c', { t }); t.fill_(2); await saving`,
  noFolder: `await writeFile('w.pth', 'x'); await tf.loadModel('w.pth')`,
  weights: `await writeFile('w.safetensors', 'PK'); await tf.readSafetensors('w.safetensors')`,
};

const script = `
  import * as tf from '${root}dist/index.js';
  import { writeFile } from 'node:fs/promises';
  const sizes = { N: 1, dModel: 8, dFf: 8, h: 2, maxLen: 6 };
  const specialIds = { pad: 0, bos: 1, eos: 2 };
  const tokenizer = tf.Tokenizer.fromJson(await tf.trainBpe(['a b'], { vocabSize: 260 }));
  const model = () => tf.makeModel(9, sizes);
  const large = () => tf.makeModel(tokenizer.vocabSize, sizes);
  const ids = (...rows) => tf.tensor(rows, { dtype: 'int64' });
  const batch = () => tf.makeBatch([{ src: [1, 5, 2], tgt: [1, 6, 2], row: 1 }], 0);
  const fit = ({ model: given, epochs = 1, ...options }, batches = [batch()]) =>
    new tf.Trainer(given ?? model(), { specialIds, reporter: null, ...options }).fit(batches, { epochs });
  await writeFile('pairs.csv', 'en,de\\na,b\\nc,d,e\\n');
  const told = {};
  const cause = async (name, act) => {
    try { await act(); } catch ({ name: kind, code, message }) { told[name] = { name: kind, code, message }; }
  };
  ${Object.entries(causes)
    .map(([name, statement]) => `await cause('${name}', async () => { ${statement} });`)
    .join('\n')}
  console.log(JSON.stringify(told));
`;

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'torchformer-test-'));
  folders.push(folder);
  return folder;
}

/** A second copy of the package beside this one. */
function secondCopy(): Thrown {
  const copy = temporaryFolder();
  for (const part of ['dist', 'build/Release', 'package.json']) {
    cpSync(join(root, part), join(copy, part), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'), 'dir');
  const { output } = runScript(`
    const first = await import('${root}dist/runtime/native/load.js');
    const second = await import('${copy}/dist/runtime/native/load.js');
    first.nativeAddon();
    try { second.nativeAddon(); } catch ({ code, message }) { console.log(JSON.stringify({ code, message })); }
  `);
  return JSON.parse(output) as Thrown;
}

/** A libtorch of another version, as far as its files tell. */
function otherVersion(): Thrown {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'lib'));
  for (const name of ['lib/libtorch_cpu.so', 'lib/libc10.so'])
    writeFileSync(join(folder, name), '');
  writeFileSync(join(folder, 'build-version'), '2.12.0');
  return evaluate('nativeAddon()', { ...nowhere(folder), TORCHFORMER_LIBTORCH: folder });
}

/** What set-up throws for this source; `before` runs in the same child, with `folder` at hand. */
function setUp(options: string, before = ''): Thrown & { readonly lines: readonly string[] } {
  const folder = temporaryFolder();
  const { output, errors } = runScript(
    `
    import { setUpLibtorch } from '${root}dist/runtime/setup/setup.js';
    import { rmSync, writeFileSync } from 'node:fs';
    const folder = ${JSON.stringify(folder)};
    ${before}
    const lines = [];
    try {
      await setUpLibtorch({ log: (line) => lines.push(line), ...${options} });
    } catch ({ code, message }) {
      console.log(JSON.stringify({ code, message, lines }));
    }
  `,
    { ...nowhere(folder), HTTP_PROXY: null, http_proxy: null },
  );
  expect(errors).toBe('');
  return JSON.parse(output) as ReturnType<typeof setUp>;
}

/** The line of a set-up that finds another one at work, which ends while it waits. */
function waiting(): Thrown {
  const { lines } = setUp(
    `{ from: folder + '/none.whl' }`,
    `
    const lock = folder + '/libtorch-2.13.0-cpu.lock';
    writeFileSync(lock, '1 another-machine');
    setTimeout(() => rmSync(lock), 500);
  `,
  );
  return { message: lines[0] ?? '' };
}

const thrown: Record<string, Thrown> = {};

beforeAll(() => {
  const folder = temporaryFolder();
  const file = join(folder, 'causes.mjs');
  writeFileSync(file, script);
  const { status, output, errors } = runNode([file], { TORCHFORMER_CUDA: '0' }, folder);
  expect(status, errors).toBe(0);
  Object.assign(thrown, JSON.parse(output));
  thrown['libtorch'] = evaluate('nativeAddon()', nowhere(temporaryFolder()));
  thrown['version'] = otherVersion();
  thrown['cpu build'] = evaluate('nativeAddon()', { TORCHFORMER_CUDA: '1' });
  thrown['copies'] = secondCopy();
  thrown['waiting'] = waiting();
  const noWheel = `writeFileSync(folder + '/torch.whl', 'no wheel');`;
  const sha256 = `sha256: '${'0'.repeat(64)}'`;
  thrown['archive'] = setUp(`{ from: folder + '/torch.whl' }`, noWheel);
  thrown['checksum'] = setUp(`{ from: folder + '/torch.whl', ${sha256} }`, noWheel);
  thrown['download'] = setUp(
    `{ from: 'http://127.0.0.1:' + port + '/torch.whl', ${sha256} }`,
    `
    import { createServer } from 'node:http';
    const server = createServer((_, response) => response.writeHead(404).end()).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    server.unref();
    const { port } = server.address();
  `,
  );
});

/** Those that need a child or a folder of their own. */
const otherCauses = [
  'libtorch',
  'version',
  'cpu build',
  'copies',
  'waiting',
  'archive',
  'checksum',
  'download',
];

describe('docs/troubleshooting.md', () => {
  it.each(entries)('has a real error in "$heading"', ({ heading, text }) => {
    const matching = Object.values(thrown).filter(({ message = '' }) => fits(heading, message));
    expect(matching.length, `no error has this: ${JSON.stringify(thrown, null, 2)}`).toBe(1);
    const [{ name, code } = {}] = matching;
    // What programs can go by stands in the text.
    if (code !== undefined) expect(text).toContain(`\`${code}\``);
    else if (name === 'TextTooLongError') expect(text).toContain(`\`${name}\``);
  });

  it('tells of every error that is caused here', () => {
    const untold = Object.entries(thrown).filter(
      ([, { message = '' }]) => !entries.some(({ heading }) => fits(heading, message)),
    );
    expect(untold).toEqual([]);
    expect(Object.keys(thrown).sort()).toEqual([...Object.keys(causes), ...otherCauses].sort());
  });
});
