/** A process of suite `responsiveness`: saves a base model. Argument: the folder. */
import { makeModel, manualSeed, saveModel, Tokenizer } from 'torchformer';
import { trainSizes } from '../sizes.js';

const [folder] = process.argv.slice(2) as [string];
const model = trainSizes.base.model;
manualSeed(1);
const special = ['<pad>', '<bos>', '<eos>', '<unk>'];
const words = Array.from({ length: model.vocabSize - special.length }, (_, index) => `w${index}`);
const tokenizer = Tokenizer.fromJson(
  JSON.stringify({
    version: '1.0',
    added_tokens: special.map((content, id) => ({
      ...{ id, content, special: true, normalized: false },
      ...{ single_word: false, lstrip: false, rstrip: false },
    })),
    pre_tokenizer: { type: 'WhitespaceSplit' },
    model: {
      type: 'WordLevel',
      vocab: Object.fromEntries([...special, ...words].map((word, id) => [word, id])),
      unk_token: '<unk>',
    },
  }),
);
const { vocabSize, ...options } = model;
await saveModel(folder, makeModel(vocabSize, options), {
  tokenizer,
  specialIds: { pad: 0, bos: 1, eos: 2 },
});
console.log(true);
