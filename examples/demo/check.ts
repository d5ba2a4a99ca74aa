/**
 * The second half of the demo, run in a separate process: loads the trained translator and counts how
 * many held-out phrases it translates exactly.
 */
import { Translator } from 'torchformer';
import { makeCorpus } from './corpus.js';

const [out = 'runs/demo', seed = '1'] = process.argv.slice(2);
const { heldOut } = makeCorpus({ seed: Number(seed) });
const translator = await Translator.load(out);
const outputs = await translator.translate(
  heldOut.map(({ src }) => src),
  { batchSize: 100 },
);
translator.dispose();

const kinds = new Map<string, { right: number; all: number }>();
const results = heldOut.map((pair, i) => {
  const output = outputs[i] ?? '';
  const right = output === pair.tgt;
  const count = kinds.get(pair.kind) ?? { right: 0, all: 0 };
  kinds.set(pair.kind, { right: count.right + Number(right), all: count.all + 1 });
  return { ...pair, output, right };
});

console.log('\nTen held-out phrases, translated in a new process:');
const stride = Math.floor(results.length / 10);
for (let i = 0; i < 10; i++) {
  const { src, tgt, output, right } = results[i * stride]!;
  console.log(`  ${src}  →  ${output}${right ? '' : `   (expected ${tgt})`}`);
}
console.log('\nExact matches by kind:');
for (const [kind, { right, all }] of kinds) {
  console.log(
    `  ${kind.padEnd(15)} ${((100 * right) / all).toFixed(1).padStart(5)} %  (${right} of ${all})`,
  );
}
const right = results.filter((result) => result.right).length;
console.log(`\nheld-out exact match: ${((100 * right) / results.length).toFixed(1)} %`);
