// Ends while a backward pass runs off the event loop.
import { makeModel, ones } from 'torchformer';
const model = makeModel(50, { N: 2, dModel: 128, dFf: 256, h: 4 });
const ids = ones([16, 50], { dtype: 'int64' });
void model.forward(ids, ids, null, null).sum().backwardAsync();
process.exit(5);
