/**
 * Suite `translator`: a translator trained from one config file by the command line, and the same one by
 * PyTorch: the same tokens, initial weights and batches. Both are scored by `torchformer evaluate`.
 */
import { spawn } from 'node:child_process';
import { cp, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { environment, runOurs, runPeer } from '../child.js';
import type { BenchOptions } from '../options.js';
import { print, say } from '../report.js';
import { withWorkFolder } from '../workFolder.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const command = join(root, 'bin', 'torchformer.js');
const configFile = join(root, 'examples', 'multi30k.yaml');

/** The peers, by the products that they and we compute in. */
const peers = { float32: 'tuned-fp32', bfloat16: 'tuned' } as const;

interface Epoch {
  /** Since the start, validations included. */
  readonly seconds: number;
  readonly validationLoss: number;
}

interface Trained {
  readonly name: string;
  readonly epochs: readonly Epoch[];
  readonly bleu: { readonly greedy: number; readonly beam: number };
}

/** @returns the results for `--json` */
export async function benchTranslator(options: BenchOptions): Promise<unknown> {
  return withWorkFolder(options.work, async (folder) => {
    const files = await writeCorpus(join(options.data, 'multi30k-de-en'), folder);
    const results: unknown[] = [];
    for (const dtype of options.dtype) results.push(await compare(dtype, options, folder, files));
    return results;
  });
}

async function compare(
  dtype: 'float32' | 'bfloat16',
  options: BenchOptions,
  folder: string,
  files: Record<'train' | 'val' | 'test', string>,
): Promise<readonly Trained[]> {
  const { epochs, threads } = options;
  const run = join(folder, `run-${dtype}`);
  say(`translator: ours, ${epochs} epochs in ${dtype}`);
  const given = ['--train', files.train, '--validate', files.val, '--out', run];
  const settings = ['--epochs', String(epochs), '--threads', String(threads), '--dtype', dtype];
  await torchformer(['train', '--config', configFile, ...given, ...settings]);
  const ours = {
    name: `ours, ${dtype}`,
    epochs: await epochsOf(run),
    bleu: await scores(run, files.test),
  };

  const args = [run, files.train, files.val, String(epochs), folder];
  const job = await runOurs<object>('translator/translatorPrepare.js', args);
  const weights = join(folder, `peer-${dtype}.safetensors`);
  const jobFile = join(folder, 'job.json');
  await writeFile(jobFile, JSON.stringify({ ...job, threads, out: weights }));
  const variant = peers[dtype];
  say(`translator: ${variant}`);
  const seconds = options.limit * 6 * epochs;
  const result = await runPeer<{ readonly epochs: readonly Epoch[] }>(
    options.python,
    'translator.py',
    ['--job', jobFile, '--variant', variant],
    { seconds },
  );
  // Its weights in a folder of ours: the same decoder translates with both.
  const model = join(folder, `peer-${dtype}`);
  await mkdir(model);
  for (const name of ['config.json', 'tokenizer.json']) {
    await cp(join(run, 'best', name), join(model, name));
  }
  await rename(weights, join(model, 'model.safetensors'));
  const peer = { name: variant, epochs: result.epochs, bleu: await scores(model, files.test) };
  report([ours, peer]);
  return [ours, peer];
}

function report(trained: readonly Trained[]): void {
  print('\n## translator: Multi30k de→en, examples/multi30k.yaml\n');
  print('| | wall time | best validation loss | BLEU, greedy | BLEU, beam 5 |');
  print('| --- | --- | --- | --- | --- |');
  for (const { name, epochs, bleu } of trained) {
    const best = Math.min(...epochs.map(({ validationLoss }) => validationLoss));
    const seconds = epochs.at(-1)?.seconds ?? NaN;
    print(
      `| ${name} | ${seconds.toFixed(0)} s | ${best.toFixed(4)} | ${bleu.greedy.toFixed(2)} | ` +
        `${bleu.beam.toFixed(2)} |`,
    );
  }
  const [ours, peer] = trained.map(({ epochs }) => epochs.at(-1)?.seconds ?? NaN);
  print(`\nPyTorch's time divided by ours: ${((peer ?? NaN) / (ours ?? NaN)).toFixed(2)}`);
  for (const { name, epochs } of trained) {
    print(`${name}: ${epochs.map(({ validationLoss }) => validationLoss.toFixed(3)).join(' ')}`);
  }
}

/** From the log: everything between the first step and the end of an epoch, saving included. */
async function epochsOf(run: string): Promise<Epoch[]> {
  const { epochs, steps, validations } = JSON.parse(
    await readFile(join(run, 'history.json'), 'utf8'),
  ) as {
    readonly epochs: readonly { readonly step: number; readonly validationLoss: number }[];
    readonly steps: readonly { readonly step: number; readonly seconds: number }[];
    readonly validations: readonly { readonly step: number; readonly seconds: number }[];
  };
  return epochs.map(({ step, validationLoss }) => {
    const taken = steps.find((one) => one.step === step)?.seconds ?? NaN;
    const validating = validations.find((one) => one.step === step)?.seconds ?? NaN;
    return { seconds: taken + validating, validationLoss };
  });
}

async function scores(model: string, test: string): Promise<{ greedy: number; beam: number }> {
  const bleu = async (beam: number) => {
    const args = ['evaluate', '--model', model, '--data', test, '--src', 'de', '--tgt', 'en'];
    const text = await torchformer([...args, '--json', '--beam', String(beam)]);
    const found = /"bleu":\s*\{[^}]*?"score":\s*([\d.]+)/.exec(text)?.[1];
    if (found === undefined) throw new Error(`evaluate printed no BLEU: ${text.slice(0, 300)}`);
    return Number(found);
  };
  return { greedy: await bleu(1), beam: await bleu(5) };
}

/** Runs our command line. @returns its standard output */
async function torchformer(args: readonly string[]): Promise<string> {
  const stdio = ['ignore', 'pipe', 'inherit'] as const;
  const child = spawn(process.execPath, [command, ...args], {
    env: environment(),
    stdio: [...stdio],
  });
  let output = '';
  child.stdout?.on('data', (data: Buffer) => (output += data.toString()));
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`torchformer ${args[0]} ended with ${String(code)}`);
  return output;
}

/** CSV files of the corpus, as people have them. */
async function writeCorpus(
  corpus: string,
  folder: string,
): Promise<Record<'train' | 'val' | 'test', string>> {
  const parts = { train: 'train', val: 'val', test: 'test_2016_flickr' } as const;
  const files: Record<string, string> = {};
  for (const [name, part] of Object.entries(parts)) {
    const lines = async (language: string) => {
      const bytes = await readFile(join(corpus, `${part}.${language}.gz`));
      return (await promisify(gunzip)(bytes)).toString().replace(/\n$/, '').split('\n');
    };
    const [sources, targets] = [await lines('de'), await lines('en')];
    const cell = (text: string) => `"${text.replaceAll('"', '""')}"`;
    const rows = sources.map((source, index) => `${cell(source)},${cell(targets[index] ?? '')}`);
    files[name] = join(folder, `${name}.csv`);
    await writeFile(files[name], ['de,en', ...rows, ''].join('\n'));
  }
  return files;
}
