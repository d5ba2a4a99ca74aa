// Saves two models in turn to the folder given, without end; each has one value in all weights.
import { makeModel, noGrad, saveModel, setNumThreads } from 'torchformer';

const [, , folder, rounds] = process.argv;
setNumThreads(1);
const models = [1, 2].map((value) => {
  const model = makeModel(200, { N: 1, dModel: 64, dFf: 256, h: 2, maxLen: 16 });
  noGrad(() => model.parameters().forEach((parameter) => parameter.fill_(value)));
  return model;
});
for (let round = 0; round < Number(rounds ?? Infinity); round++) {
  const which = round % 2;
  await saveModel(folder, models[which], { training: { value: which + 1 } });
  process.stdout.write('saved\n');
}
