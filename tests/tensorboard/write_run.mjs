// Writes the event files of a run that was killed after step 6 and resumed from its checkpoint of step 4.
// Argument: the folder.
import { TensorBoardWriter } from '../../dist/index.js';

const writer = new TensorBoardWriter({ folder: process.argv[2], settings: { lr: 0.5 } });
const start = (step) =>
  writer.start({
    ...{ step, epoch: 0, seconds: step / 2, epochs: 1, steps: Infinity },
    ...{ parameters: 10, out: null },
  });
const step = (number, loss) =>
  writer.step({
    ...{ step: number, epoch: 1, loss, tokens: 100, learningRate: 0.5, gradientNorm: 2 },
    ...{ seconds: number / 2, batch: number, batches: null, epochLoss: loss, epochTokens: 100 },
  });
const validation = (number, loss, bleu) =>
  writer.validation({
    ...{ step: number, epoch: 1, loss, perplexity: Math.exp(loss), accuracy: 0.5, tokens: 10 },
    ...{ bleu, chrf: bleu, seconds: 1, best: true },
    samples: [{ source: 'a | <b>', translation: '*x*', reference: null, attention: null }],
  });

await start(0);
for (let number = 1; number <= 4; number++) step(number, 1 / number);
await validation(4, 2, 12.5);
for (let number = 5; number <= 6; number++) step(number, 100);
// Killed: no end. The next start closes the file.
await start(4);
for (let number = 5; number <= 8; number++) step(number, number === 5 ? NaN : 1 / number);
await validation(8, 1, null);
await writer.end({ step: 8, epoch: 1, seconds: 4, reason: 'finished' });
