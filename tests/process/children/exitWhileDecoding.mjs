// Decodes until it ends itself: by process.exit or an uncaught error, with or without listeners.
import { makeModel, SequenceGenerator } from 'torchformer';
const [way, listeners] = process.argv.slice(2);
const model = makeModel(200, { N: 2, dModel: 64, dFf: 128, h: 4 }).eval();
const generator = new SequenceGenerator(model, { specialIds: { pad: 0, bos: 1, eos: 2 } });
const sources = Array.from({ length: 32 }, (_, row) => [1, 3 + row, 4, 2]);
const decode = () => generator.generate(sources, { beam: 4, suppress: [2], maxLength: 150 });
await generator.generate(sources, { maxLength: 1 });
if (listeners === 'none') process.removeAllListeners('exit');
setTimeout(() => {
  if (way === 'throw') throw new Error('boom');
  process.exit(5);
}, 50);
for (;;) await decode();
